from __future__ import annotations

from base64 import b64encode

import pytest

from tests.judges.adapters.requests import PNG, request
from tests.llm_server import LlmServer, always
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.anthropic import AnthropicAdapter, read_message
from trajudge.judges.model import Message, Text
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_system_apart_images_encoded_and_max_tokens_always_sent(suffix: str) -> None:
    with LlmServer() as server:
        adapter = AnthropicAdapter("claude-sonnet-4-5", base_url=server.url + suffix)
        parameters = {"seed": 3, "logprobs": True, "temperature": 0}
        sent = await adapter.send(request(adapter.name, image=True, parameters=parameters))
        await adapter.close()
    seen = server.seen[0]
    assert seen.path == "/v1/messages"
    assert seen.payload["system"] == [{"type": "text", "text": "You are a judge."}]
    (user,) = seen.payload["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "text", "image"]
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(PNG).decode()}
    assert user["content"][2]["source"] == source
    assert sent.reply.parameters == {"max_tokens": 4096, "temperature": 0}


@pytest.mark.parametrize(
    ("model", "words", "marked"),
    [
        ("claude-sonnet-4-5", 300, False),
        ("claude-sonnet-4-5", 1200, True),
        ("claude-3-5-haiku-latest", 1000, False),
        ("claude-opus-4-5", 1000, False),
        ("claude-opus-4-5", 5000, True),
    ],
)
async def test_only_a_system_prompt_that_can_be_cached_is_marked(
    model: str, words: int, marked: bool
) -> None:
    system = Message(role="system", parts=(Text(text="Judge."), Text(text="word " * words)))
    asked = request(model)
    asked = asked.model_copy(update={"messages": (system, *asked.messages[1:])})
    with LlmServer() as server:
        adapter = AnthropicAdapter(model, base_url=server.url)
        await adapter.send(asked)
        await adapter.close()
    first, last = server.seen[0].payload["system"]
    assert "cache_control" not in first
    assert last.get("cache_control") == ({"type": "ephemeral"} if marked else None)


async def test_a_full_window_moves_the_prompt_down_a_rung() -> None:
    with LlmServer(script=always("window-exceeded")) as server:
        adapter = AnthropicAdapter("claude-sonnet-4-5", base_url=server.url)
        with pytest.raises(errors.ContextOverflow):
            await adapter.send(request())
        await adapter.close()


async def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    with pytest.raises(UserError, match="ANTHROPIC_API_KEY"):
        AnthropicAdapter("claude-sonnet-4-5")


def test_usage_tells_cached_tokens_apart_and_thinking_is_no_text() -> None:
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 2,
        "output_tokens": 4,
    }
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]
    told = {"content": blocks, "usage": usage, "stop_reason": "end_turn"}
    reply = read_message(told, where="x")
    assert reply.text == "yes"
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.cache_read, reply.usage.cache_write) == (5, 7, 2)
