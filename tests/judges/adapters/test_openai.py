from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.judges.adapters.every_adapter import without_litellm
from tests.judges.adapters.requests import PICTURE, PNG, adapter_for, request
from tests.llm_replies import Incoming, Outgoing, answer, error
from tests.llm_server import LlmServer, at
from trajudge.judges.adapters.base import RateHeaders
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.model import Detail, Message, Reply, Request
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio


async def replies(server: LlmServer, model: str, *, image: bool = False) -> Reply:
    adapter = OpenAIAdapter(model, base_url=server.url + "/v1")
    try:
        parameters = {"max_tokens": 50, "temperature": 0, "seed": 1}
        return (await adapter.send(request(model, image=image, parameters=parameters))).reply
    finally:
        await adapter.close()


async def test_parts_stay_parts_and_one_text_is_a_string() -> None:
    with LlmServer() as server:
        await replies(server, "gpt-4o")
        await replies(server, "gpt-4o", image=True)
    system, user = server.seen[0].payload["messages"]
    assert system == {"role": "system", "content": "You are a judge."}
    assert user["content"] == [
        {"type": "text", "text": "Judge <this>."},
        {"type": "text", "text": "Second part"},
    ]
    picture = server.seen[1].payload["messages"][1]["content"][2]
    url = f"data:image/png;base64,{b64encode(PNG).decode()}"
    assert picture == {"type": "image_url", "image_url": {"url": url}}


REFUSED_PARTS = {
    "DeepSeek": (422, "messages[1]: invalid type: sequence, expected a string at line 1 column 9"),
    "Groq": (400, "for 'role:user' the following must be satisfied[('messages.1.content' : value "
             "must be a string)]"),
    "SiliconFlow": (400, "Input should be a valid string"),
}  # fmt: skip


@pytest.mark.parametrize("server_of", REFUSED_PARTS)
@pytest.mark.parametrize("name", ["openai", "http", pytest.param("litellm", marks=without_litellm)])
async def test_a_server_that_knows_no_parts_gets_one_string_and_the_reply_says_so(
    name: str, server_of: str
) -> None:
    status, words = REFUSED_PARTS[server_of]

    def respond(incoming: Incoming) -> Outgoing:
        if isinstance(incoming.payload["messages"][1]["content"], list):
            return error(incoming, status, words, kind="invalid_request_error")
        return answer(incoming, "yes")

    with LlmServer(text=respond) as server:
        adapter, model = adapter_for(name, server.url)
        try:
            replies = [(await adapter.send(request(model))).reply for _ in range(2)]
        finally:
            await adapter.close()
        assert server.stats.requests == 3, "it is learned once"
    assert server.seen[-1].payload["messages"][1]["content"] == "Judge <this>.\n\nSecond part"
    assert [reply.parameters["text_parts"] for reply in replies] == ["joined"] * 2


@pytest.mark.parametrize("name", ["openai", "http", pytest.param("litellm", marks=without_litellm)])
async def test_the_detail_of_an_image_is_asked_for_and_tells_requests_apart(name: str) -> None:
    plain = with_detail(request(image=True), "auto")
    sharp = with_detail(plain, "high")
    assert plain.hash != sharp.hash != with_detail(plain, "low").hash
    with LlmServer() as server:
        adapter, model = adapter_for(name, server.url)
        try:
            await adapter.send(with_detail(request(model, image=True), "high"))
        finally:
            await adapter.close()
    assert server.seen[0].payload["messages"][1]["content"][2]["image_url"]["detail"] == "high"


def with_detail(plain: Request, detail: Detail) -> Request:
    """The same request, its picture of that detail."""
    system, user = plain.messages
    picture = PICTURE.model_copy(update={"detail": detail})
    shown = Message(role="user", parts=(*user.parts[:-1], picture))
    return Request(endpoint=plain.endpoint, model=plain.model, messages=(system, shown))


@pytest.mark.parametrize("model", ["o3", "gpt-5-mini", "o4-mini-2025-04-16"])
async def test_reasoning_models_get_their_own_limit_and_no_temperature(model: str) -> None:
    with LlmServer() as server:
        reply = await replies(server, model)
    assert reply.parameters == {"max_completion_tokens": 50, "seed": 1}


async def test_parameters_that_change_from_call_to_call_are_sent_as_they_are() -> None:
    in_turn: list[dict[str, Any]] = [
        {"temperature": 0},
        {"temperature": 0.0},
        {"temperature": 1, "extra_body": {"k": 1}},
    ]
    with LlmServer() as server:
        adapter = OpenAIAdapter("gpt-4o", base_url=server.url + "/v1")
        try:
            for parameters in [*in_turn, *in_turn]:
                await adapter.send(request(parameters=parameters))
        finally:
            await adapter.close()
    sent = [(repr(seen.payload["temperature"]), seen.payload.get("k")) for seen in server.seen]
    assert sent == 2 * [("0", None), ("0.0", None), ("1", 1)]


async def test_a_refused_max_tokens_is_sent_under_its_other_name() -> None:
    with LlmServer(script=at({0: "no-max-tokens", 1: "no-temperature"})) as server:
        reply = await replies(server, "brand-new")
    assert reply.parameters == {"max_completion_tokens": 50, "seed": 1}
    assert server.stats.requests == 3


async def test_the_key_is_needed_by_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        OpenAIAdapter("gpt-4o")
    assert OpenAIAdapter("gpt-4o", dry_run=True).endpoint == "openai"
    with LlmServer() as server:
        await replies(server, "gpt-4o")
    assert server.seen[0].headers["authorization"] == "Bearer none"


async def test_the_endpoint_tells_a_local_server_from_the_service() -> None:
    adapter = OpenAIAdapter("gpt-4o", base_url="http://127.0.0.1:9/v1/")
    assert adapter.endpoint == "http://127.0.0.1:9/v1"
    assert OpenAIAdapter("gpt-4o", base_url="http://127.0.0.1:9").endpoint == adapter.endpoint
    with pytest.raises(UserError, match="localhost:9"):
        OpenAIAdapter("gpt-4o", base_url="localhost:9")


@pytest.mark.parametrize(
    "url", ["http://user:secret@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?a=secret"]
)
def test_what_of_a_url_would_not_be_sent_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UserError, match=r"--base-url http://127\.0\.0\.1:9/v1: ") as refused:
        OpenAIAdapter("gpt-4o", base_url=url)
    assert "secret" not in str(refused.value)


async def test_the_same_adapter_reports_the_limits_it_was_told() -> None:
    with LlmServer(rpm=6000) as server:
        adapter = OpenAIAdapter("gpt-4o", base_url=server.url)
        sent = await adapter.send(request())
        await adapter.close()
    assert sent.limits == RateHeaders(requests=6000, requests_left=99)
