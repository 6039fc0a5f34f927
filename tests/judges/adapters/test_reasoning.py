"""How much a model is told to think, and what it thought, through the real SDKs and a server on
loopback whose answers have the shapes that the services document."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.judges.adapters.requests import request
from tests.llm_replies import Incoming, Outgoing
from tests.llm_server import LlmServer
from trajudge.judges.adapters.errors import BadRequest
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.adapters.wire import chat_fields, messages_fields
from trajudge.judges.model import Reply
from trajudge.judges.models import capability
from trajudge.util.errors import UserError

THOUGHT = "It might be <success>Successful</success>."
VERDICT = "<success>Unsuccessful</success>"


def ask(
    server: LlmServer, adapter: str, model: str, headers: dict[str, str] | None = None, **given: Any
) -> Reply:
    """The reply to one request with these parameters."""
    url = server.url if adapter == "anthropic" else f"{server.url}/v1"
    made, name = make_adapter(model, adapter=adapter, base_url=url, headers=headers)

    async def send() -> Reply:
        try:
            return (await made.send(request(name, parameters=given))).reply
        finally:
            await made.close()

    return asyncio.run(send())


def answering(**content: Any) -> LlmServer:
    """A server whose every answer is that JSON object."""
    return LlmServer(text=lambda incoming: Outgoing(200, orjson.dumps(content)), record=9)


def chat(message: dict[str, Any], **usage: Any) -> dict[str, Any]:
    """A completion with that message."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {"id": "1", "model": "m", "choices": [choice], "usage": usage}


def sent(server: LlmServer) -> dict[str, Any]:
    """The last body without its prompt."""
    last: Incoming = server.seen[-1]
    return {k: v for k, v in last.payload.items() if k not in ("model", "messages", "system")}


DETAILS = [{"type": "reasoning.text", "text": THOUGHT, "format": "unknown", "index": 0}]
PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
    {"type": "text", "text": VERDICT},
]
MESSAGES: dict[str, dict[str, Any]] = {
    "vllm, sglang, deepseek": {"content": VERDICT, "reasoning_content": THOUGHT},
    "vllm since 0.11, openrouter": {"content": VERDICT, "reasoning": THOUGHT},
    "openrouter": {"content": VERDICT, "reasoning_details": DETAILS},
    "mistral": {"content": PARTS},
}


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("adapter", ["openai", "http", "litellm"])
def test_thoughts_are_read_apart_from_the_answer(kind: str, adapter: str) -> None:
    if adapter == "litellm" and kind in {"openrouter", "mistral"}:
        pytest.skip("litellm keeps no such parts of an openai/ server")
    details = {"reasoning_tokens": 30}
    usage = {"prompt_tokens": 9, "completion_tokens": 40, "total_tokens": 49}
    answer = chat(MESSAGES[kind], **usage, completion_tokens_details=details)
    with answering(**answer) as server:
        reply = ask(server, adapter, "openai/m" if adapter == "litellm" else "m")
    assert reply.text == VERDICT
    assert reply.thoughts == THOUGHT
    assert reply.usage is not None
    assert (reply.usage.output, reply.usage.reasoning) == (40, 30)


@pytest.mark.parametrize(
    "usage",
    [
        {"completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 30}},  # xAI
        {"completion_tokens": 10},  # Gemini
    ],
)
def test_thoughts_that_only_the_total_counts_are_billed(usage: dict[str, Any]) -> None:
    with answering(**chat({"content": "x"}, prompt_tokens=9, total_tokens=49, **usage)) as server:
        reply = ask(server, "openai", "m")
    assert reply.usage is not None
    assert (reply.usage.output, reply.usage.reasoning) == (40, 30)


@pytest.mark.parametrize("adapter", ["openai", "http"])
def test_an_effort_goes_out_and_takes_the_temperature_with_it(adapter: str) -> None:
    with LlmServer(record=9) as server:
        reply = ask(server, adapter, "gpt-5.4", temperature=0.0, reasoning_effort="high")
        assert sent(server) == {"reasoning_effort": "high"} == reply.parameters
        ask(server, adapter, "gpt-5.4", temperature=0.0, reasoning_effort="none")
        assert sent(server) == {"reasoning_effort": "none", "temperature": 0.0}


def test_what_the_user_told_is_never_left_out() -> None:
    body = {"error": {"message": "Unsupported parameter: 'reasoning_effort'", "code": None}}
    with LlmServer(text=lambda incoming: Outgoing(400, orjson.dumps(body))) as server:
        with pytest.raises(BadRequest, match="reasoning_effort"):
            ask(server, "openai", "m", reasoning_effort="high")
        assert server.stats.requests == 1


def test_every_service_is_told_in_its_own_words() -> None:
    effort, budget = {"reasoning_effort": "low"}, {"thinking_budget": 2_000}
    router = "openrouter.ai:443"
    assert chat_fields(effort, router, "m") == {"reasoning": {"effort": "low"}}
    assert chat_fields(budget, router, "m") == {"reasoning": {"max_tokens": 2_000}}
    google = {"google": {"thinking_config": {"thinking_budget": 2_000}}}
    host = "generativelanguage.googleapis.com:443"
    assert chat_fields(budget, host, "gemini-2.5-pro") == {"extra_body": google}
    assert chat_fields(effort, host, "gemini-2.5-pro") == effort
    qwen = chat_fields(budget, "dashscope-intl.aliyuncs.com:443", "qwen3-max")
    assert qwen == {"enable_thinking": True, "thinking_budget": 2_000}
    assert chat_fields(budget, host, "tuned") == {"extra_body": google}
    assert chat_fields(budget, "127.0.0.1:8000", "gemini-2.5-pro") == {"extra_body": google}
    assert chat_fields(budget, "dashscope-intl.aliyuncs.com:443", "deepseek-r1") == qwen
    assert chat_fields(budget, "127.0.0.1:8000", "qwen3-max") == qwen
    with pytest.raises(UserError, match=r"--extra-body"):
        chat_fields(budget, "api.openai.com:443", "o3")
    assert chat_fields({}, "api.openai.com:443", "o3") == {}


@pytest.mark.parametrize(
    ("model", "given", "fields"),
    [
        ("claude-opus-4-5", {"reasoning_effort": "low"}, {"output_config": {"effort": "low"}}),
        ("own", {"reasoning_effort": "low"}, {"output_config": {"effort": "low"}}),
        (
            "claude-opus-4-6",
            {"reasoning_effort": "low"},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        ("claude-opus-4-6", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ("claude-opus-5-5", {"reasoning_effort": "none"}, {}),
        (
            "claude-opus-4-6",
            {"reasoning_effort": "none", "thinking_budget": 1_024},
            {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
        ),
        (
            "claude-sonnet-4-5",
            {"thinking_budget": 1_024, "max_tokens": 1_025},
            {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
        ),
        ("claude-sonnet-4-5", {}, {}),
    ],
)
def test_what_goes_into_a_message_of_anthropics(
    model: str, given: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert messages_fields(given, capability(model), model) == fields


def test_claude_thinks_with_a_budget_and_without_a_temperature() -> None:
    blocks = [
        {"type": "thinking", "thinking": THOUGHT, "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": VERDICT},
    ]
    usage: dict[str, Any] = {"input_tokens": 9, "output_tokens": 40}
    usage |= {"output_tokens_details": {"thinking_tokens": 30}}
    body = {"type": "message", "content": blocks, "stop_reason": "end_turn", "usage": usage}
    with answering(**body) as server:
        given: dict[str, Any] = {
            "max_tokens": 9_000,
            "temperature": 0.0,
            "top_p": 0.9,
            "thinking_budget": 8_000,
        }
        reply = ask(server, "anthropic", "claude-sonnet-4-5", **given)
        thinking = {"type": "enabled", "budget_tokens": 8_000}
        assert sent(server) == {"max_tokens": 9_000, "thinking": thinking, "top_p": 0.9}
    assert (reply.text, reply.thoughts) == (VERDICT, THOUGHT)
    assert reply.usage is not None
    assert (reply.usage.output, reply.usage.reasoning) == (40, 30)


def test_claude_with_adaptive_thinking_is_told_an_effort() -> None:
    schema = {"json_schema": {"name": "v", "schema": {"type": "object"}}, "type": "json_schema"}
    with LlmServer(record=9) as server:
        given: dict[str, Any] = {"max_tokens": 9_000, "temperature": 0.0, "response_format": schema}
        ask(server, "anthropic", "claude-opus-4-6", reasoning_effort="high", **given)
        output = {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}}
        told = {"thinking": {"type": "adaptive"}, "output_config": output}
        assert sent(server) == {"max_tokens": 9_000, **told}
        ask(server, "anthropic", "claude-opus-4-6", **given)
        assert sent(server)["temperature"] == 0.0


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        ("claude-sonnet-4-5", {"reasoning_effort": "high"}, "takes no effort"),
        ("claude-opus-4-7", {"thinking_budget": 2_000}, "use --reasoning-effort"),
        ("claude-sonnet-4-5", {"thinking_budget": 1_023}, "at least 1,024"),
        ("claude-sonnet-4-5", {"thinking_budget": 9_000, "max_tokens": 9_000}, "less than"),
    ],
)
def test_what_a_claude_does_not_take_is_said(model: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        messages_fields(given, capability(model), model)


@pytest.mark.parametrize("adapter", ["openai", "http", "anthropic", "litellm"])
def test_extra_fields_and_headers_go_out_with_every_request(adapter: str) -> None:
    names = {"anthropic": "claude-sonnet-4-5", "litellm": "openai/m"}
    headers = {"X-Team": "agents", "X-Api-Secret": "hush"}
    shown = {"X-Team": "agents", "X-Api-Secret": "(secret)"}
    with LlmServer(record=9) as server:
        reply = ask(
            server,
            adapter,
            names.get(adapter, "m"),
            headers,
            max_tokens=50,
            extra_body={"top_k": 7, "chat_template_kwargs": {"enable_thinking": False}},
            extra_headers=shown,
        )
        assert sent(server)["top_k"] == 7
        assert sent(server)["chat_template_kwargs"] == {"enable_thinking": False}
        assert "extra_headers" not in sent(server)
        assert server.seen[-1].headers["x-api-secret"] == "hush"
        assert server.seen[-1].headers["x-team"] == "agents"
    assert reply.parameters["extra_headers"] == shown
