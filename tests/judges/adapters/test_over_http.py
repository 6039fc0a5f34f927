"""Every adapter against a real server on loopback, through its real SDK."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from tests.judges.adapters.every_adapter import every_adapter, without_litellm
from tests.judges.adapters.faults import ERRORS
from tests.judges.adapters.requests import adapter_for, request
from tests.llm_replies import Incoming, Outgoing, answer
from tests.llm_server import LlmServer, always, at
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.base import Adapter, AdapterResponse
from trajudge.judges.model import Reply, Usage

pytestmark = pytest.mark.anyio

AIOHTTP = ["openai", "http", "anthropic"]


@asynccontextmanager
async def opened(name: str, url: str, **options: Any) -> AsyncIterator[tuple[Adapter, str]]:
    adapter, model = adapter_for(name, url, **options)
    try:
        yield adapter, model
    finally:
        await adapter.close()


async def send(
    name: str, server: LlmServer, *, image: bool = False, **options: Any
) -> AdapterResponse:
    async with opened(name, server.url, **options) as (adapter, model):
        parameters = {"max_tokens": 100, "temperature": 0}
        return await adapter.send(request(model, image=image, parameters=parameters))


@every_adapter
async def test_a_reply_with_usage_and_the_parameters_really_sent(name: str) -> None:
    with LlmServer(text="<success>Successful</success>", cached_tokens=3) as server:
        sent = await send(name, server)
    prompt = len(server.seen[0].prompt) // 4
    assert sent.reply.text == "<success>Successful</success>"
    assert sent.reply.finish == "stop"
    assert sent.reply.usage == Usage(input=prompt - 3, cache_read=3, output=29 // 4)
    assert sent.reply.parameters == {"max_tokens": 100, "temperature": 0}
    assert sent.reply.seconds > 0
    assert sent.limits is None


UNREADABLE = ["cut", "malformed", "shapeless"]


@pytest.mark.slow
@every_adapter
@pytest.mark.parametrize("fault", ERRORS)
async def test_a_fault_is_one_of_our_errors_after_one_request(name: str, fault: str) -> None:
    with LlmServer(script=always(fault)) as server:
        with pytest.raises(ERRORS[fault]):
            await send(name, server, image=fault.startswith("image"))
        assert server.stats.requests == 1


@every_adapter
@pytest.mark.parametrize("fault", UNREADABLE)
async def test_an_answer_that_cannot_be_read_may_be_asked_for_again(name: str, fault: str) -> None:
    with LlmServer(script=always(fault)) as server:
        with pytest.raises(errors.Retryable) as caught:
            await send(name, server)
        assert server.stats.requests == 1
    # litellm tells such answers only as errors of the server.
    assert name == "litellm" or isinstance(caught.value, errors.BadReply | errors.Unreachable)


@every_adapter
async def test_retry_after_is_passed_on(name: str) -> None:
    with (
        LlmServer(script=always("429")) as server,
        pytest.raises(errors.RateLimited) as caught,
    ):
        await send(name, server)
    assert caught.value.retry_after == 0.3


@every_adapter
async def test_the_limits_told_are_passed_on_with_replies_and_refusals(name: str) -> None:
    with LlmServer(rpm=60) as server:
        async with opened(name, server.url) as (adapter, model):
            sent = await adapter.send(request(model))
            with pytest.raises(errors.RateLimited) as caught:
                await adapter.send(request(model))
    for limits in (sent.limits, caught.value.limits):
        assert limits is not None
        assert (limits.requests, limits.requests_left) == (60, 0)
    assert caught.value.retry_after == pytest.approx(1, abs=0.9)


@every_adapter
async def test_silence_is_unreachable_after_the_timeout(name: str) -> None:
    with (
        LlmServer(script=always("hang")) as server,
        pytest.raises(errors.Unreachable, match="in time"),
    ):
        await send(name, server, timeout=0.3)


@every_adapter
async def test_a_refused_connection_says_where(name: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        async with opened(name, f"http://127.0.0.1:{port}") as (adapter, model):
            with pytest.raises(errors.Unreachable, match=f"127.0.0.1:{port}") as caught:
                await adapter.send(request(model))
    assert "in time" not in str(caught.value)


@pytest.mark.parametrize("name", AIOHTTP)
async def test_a_dropped_connection_is_not_taken_for_silence(name: str) -> None:
    with (
        LlmServer(script=always("drop")) as server,
        pytest.raises(errors.Unreachable, match=r"cannot reach .*: Server disconnected"),
    ):
        await send(name, server, timeout=5)


_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_CHUNKED = _HEAD + b"transfer-encoding: chunked\r\n"


@pytest.mark.parametrize("name", AIOHTTP)
@pytest.mark.parametrize(
    ("sent", "kind", "told"),
    [
        (_HEAD + b'content-length: 900\r\n\r\n{"id', errors.BadReply, "in the middle of its"),
        (_CHUNKED + b'\r\n4\r\n{"id\r\n', errors.BadReply, "in the middle of its"),
        (_HEAD + b"content-le", errors.BadReply, "in the middle of its"),
        (b"\x15\x03\x01\x00\x02\x02\r\n\r\n", errors.Unreachable, "something that is not HTTP"),
    ],
    ids=["length", "chunks", "head", "no HTTP"],
)
async def test_an_answer_that_breaks_off_is_no_unreachable_server(
    name: str, sent: bytes, kind: type[errors.CallFailed], told: str
) -> None:
    """It read "cannot reach 127.0.0.1:8000: 400, message: Not enough data"."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with opened(name, f"http://127.0.0.1:{port}") as (adapter, model):
            with pytest.raises(kind, match=told) as caught:
                await adapter.send(request(model))
    assert "400" not in str(caught.value).replace(str(port), "")


@pytest.mark.slow
@pytest.mark.parametrize("name", AIOHTTP)
async def test_waiting_for_a_connection_is_not_the_servers_silence(name: str) -> None:
    with LlmServer(latency=0.4) as server:
        async with opened(name, server.url, timeout=1, max_connections=1) as (adapter, model):
            sent = await asyncio.gather(*(adapter.send(request(model)) for _ in range(4)))
        assert server.connections_made == server.stats.max_in_flight == 1
    assert len(sent) == 4


@every_adapter
@pytest.mark.parametrize(
    ("fault", "finish"), [("refusal", "refused"), ("length", "length"), ("empty-length", "length")]
)
async def test_how_an_answer_ended(name: str, fault: str, finish: str) -> None:
    with LlmServer(script=always(fault)) as server:
        sent = await send(name, server)
    assert sent.reply.finish == finish


class Ending:
    """Answers that end with the protocol's field saying ``word``."""

    word: str | None = "stop"

    def __call__(self, incoming: Incoming) -> Outgoing:
        content = orjson.loads(answer(incoming, "<success>Successful</success>").body)
        if incoming.protocol == "anthropic":
            content["stop_reason"] = self.word
        else:
            content["choices"][0]["finish_reason"] = self.word
        return Outgoing(200, orjson.dumps(content))


# vLLM and SGLang (abort), vLLM, Mistral, Cohere and OpenRouter (error), DeepSeek
# (insufficient_system_resource), Zhipu (network_error), Gemini (OTHER), Anthropic (pause_turn).
BROKEN_OFF: list[str | None] = [
    "abort",
    "error",
    "insufficient_system_resource",
    "network_error",
    "OTHER",
]
BROKEN_OFF += ["pause_turn", "a word of tomorrow", "", None]


@every_adapter
async def test_an_answer_that_broke_off_is_asked_for_again(name: str) -> None:
    ending = Ending()
    with LlmServer(text=ending) as server:
        async with opened(name, server.url) as (adapter, model):
            for number, ending.word in enumerate(BROKEN_OFF, start=1):
                with pytest.raises(errors.BadReply, match="answer") as caught:
                    await adapter.send(request(model))
                assert server.stats.requests == number
                assert caught.value.usage is not None, "what was billed is known"


NO_USAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "missing": lambda _: ...,
    "null": lambda _: None,
    "empty": lambda _: {},
    "a text": lambda _: "852 tokens",
    "zeros": lambda usage: dict.fromkeys(usage, 0),
    "nulls": dict.fromkeys,
    "texts": lambda usage: {name: f"{count}" for name, count in usage.items()},
    "booleans": lambda usage: dict.fromkeys(usage, True),
    "negative": lambda usage: dict.fromkeys(usage, -1),
    "no answer's": lambda usage: (
        usage | {"completion_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    ),
    "no prompt's": lambda usage: usage | {"prompt_tokens": None, "input_tokens": None},
}


@every_adapter
async def test_a_server_that_counts_nothing_has_an_unknown_usage(name: str) -> None:
    with LlmServer() as server:
        async with opened(name, server.url) as (adapter, model):
            known = set()
            for kind, server.usage in NO_USAGE.items():
                sent = await adapter.send(request(model))
                assert sent.reply.text
                known |= {kind} if sent.reply.usage is not None else set()
            assert not known
            server.usage = lambda usage: {n: c and float(c) for n, c in usage.items() if _is(c)}
            assert (await adapter.send(request(model))).reply.usage is not None


def _is(count: object) -> bool:
    return isinstance(count, int)


@every_adapter
async def test_how_other_servers_word_a_whole_a_cut_and_a_declined_answer(name: str) -> None:
    # Text generation inference and Together (eos), Cohere (COMPLETE), Gemini (STOP, MAX_TOKENS,
    # SAFETY), Zhipu (sensitive), Bedrock (guardrail_intervened).
    words = {
        "stop": ["eos_token", "eos", "stop_sequence", "COMPLETE", "STOP", "tool_calls"],
        "length": ["MAX_TOKENS", "max_tokens", "length"],
        "refused": ["SAFETY", "content_filter: RECITATION", "sensitive", "guardrail_intervened"],
    }
    ending = Ending()
    with LlmServer(text=ending) as server:
        async with opened(name, server.url) as (adapter, model):
            for finish, named in words.items():
                for ending.word in named:
                    sent = await adapter.send(request(model))
                    assert sent.reply.finish == finish, ending.word
            for ending.word in ("model_context_window_exceeded", "model_length"):
                with pytest.raises(errors.ContextOverflow):
                    await adapter.send(request(model))


ODD_BODIES: list[tuple[bytes, str]] = [
    (rb"half \ud83d of a pair", "half \ufffd of a pair"),
    (rb"a pair \ud83d\ude00", "a pair \U0001f600"),
    (b"no \xff\xfe UTF-8", "no \ufffd\ufffd UTF-8"),
    (b"a\nnew line", "a\nnew line"),
]


@every_adapter
@pytest.mark.parametrize(("raw", "text"), ODD_BODIES)
async def test_an_answer_in_odd_json_is_paid_once_and_kept(
    name: str, raw: bytes, text: str
) -> None:
    def respond(incoming: Incoming) -> Outgoing:
        return Outgoing(200, answer(incoming, "ANSWER").body.replace(b"ANSWER", raw))

    with LlmServer(text=respond) as server:
        reply = (await send(name, server)).reply
        assert server.stats.requests == 1
    assert reply.text == text
    assert Reply.model_validate_json(reply.model_dump_json()) == reply
    assert reply.usage and reply.usage.input


@every_adapter
async def test_numbers_that_are_none_and_a_byte_order_mark_lose_no_answer(name: str) -> None:
    def respond(incoming: Incoming) -> Outgoing:
        body = answer(incoming, "yes", logprobs={"content": []}).body
        token = b'{"token": "yes", "logprob": NaN, "bytes": [], "top_logprobs": [%b]}'
        other = b'{"token": "no", "logprob": -Infinity, "bytes": []}'
        body = body.replace(b'"content":[]', b'"content":[' + token % other + b"]")
        body = body.replace(b'"stop_sequence":null', b'"stop_sequence":NaN')
        return Outgoing(200, b"\xef\xbb\xbf" + body)

    with LlmServer(text=respond) as server:
        reply = (await send(name, server)).reply
        assert server.stats.requests == 1
    assert reply.text == "yes"
    assert Reply.model_validate_json(reply.model_dump_json()) == reply
    if name in {"openai", "http"}:
        logprobs: Any = reply.logprobs
        (token,) = logprobs["content"]
        assert token["logprob"] is token["top_logprobs"][0]["logprob"] is None


@every_adapter
async def test_an_empty_answer_is_a_reply(name: str) -> None:
    with LlmServer(script=always("empty")) as server:
        sent = await send(name, server)
    assert (sent.reply.text, sent.reply.finish) == ("", "stop")


@pytest.mark.parametrize("name", ["openai", "http", pytest.param("litellm", marks=without_litellm)])
async def test_a_filtered_answer_is_refused(name: str) -> None:
    with LlmServer(script=always("content-filter")) as server:
        sent = await send(name, server)
    assert sent.reply.finish == "refused"


@every_adapter
async def test_an_image_answered_with_500_is_not_asked_again_for_ever(name: str) -> None:
    with (
        LlmServer(script=always("image-500")) as server,
        pytest.raises(errors.BadRequest, match="image"),
    ):
        await send(name, server, image=True)


@every_adapter
async def test_a_refused_parameter_is_left_out_and_remembered(name: str) -> None:
    with LlmServer(script=at({0: "no-temperature"})) as server:
        async with opened(name, server.url) as (adapter, model):
            ask = request(model, parameters={"max_tokens": 100, "temperature": 0})
            first, second = await adapter.send(ask), await adapter.send(ask)
        assert server.stats.requests == 3
    assert first.reply.parameters == second.reply.parameters == {"max_tokens": 100}


@every_adapter
async def test_an_address_is_asked_again_after_an_adapter_was_closed(name: str) -> None:
    """As in a notebook, where one run follows another."""
    with LlmServer(text="yes") as server:
        said = [(await send(name, server)).reply.text for _ in range(2)]
    assert said == ["yes", "yes"]


@every_adapter
async def test_the_key_is_in_no_message(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-very-secret-0123456789"
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, key)
    for fault in ("401", "500", "cut", "malformed", "overflow", "drop"):
        with LlmServer(script=always(fault)) as server:
            async with opened(name, server.url) as (adapter, model):
                with pytest.raises(errors.CallFailed) as caught:
                    await adapter.send(request(model))
                shown = f"{caught.value!r} {caught.value} {adapter!r} {adapter.endpoint}"
        assert key in str(server.seen[0].headers), "the server did get it"
        assert key not in shown
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
