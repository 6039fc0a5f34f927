"""Model calls through the proxy by the providers' own SDKs: what they read, and what is noted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.llm_replies import Outgoing
from tests.llm_server import LlmServer, always
from tests.proxy.arms import Arm
from tests.proxy.model_server import WORDS, model_server
from tests.proxy.site import Site, events_of, proxied
from tests.proxy.tls import own_certificate
from trajudge.proxy.commands import model_api
from trajudge.proxy.process import RunningProxy, running

if TYPE_CHECKING:
    import anthropic
    import openai

pytestmark = pytest.mark.anyio
ASKED: Any = [{"role": "user", "content": "Shall I?"}]


def apis(url: str) -> dict[str, Any]:
    return {
        "apis": tuple(
            model_api(f"{n}={url}{p}", {}) for n, p in (("openai", "/v1"), ("anthropic", ""))
        )
    }


@pytest.fixture(autouse=True)
async def opened() -> AsyncIterator[None]:
    """Close the SDKs' clients on the loop that they were used on."""
    yield
    for sdk in SDKS:
        await sdk.close()
    SDKS.clear()


SDKS: list[openai.AsyncOpenAI | anthropic.AsyncAnthropic] = []


def gpt(proxy: RunningProxy) -> openai.AsyncOpenAI:
    import openai

    sdk = openai.AsyncOpenAI(base_url=proxy.api_url("openai"), api_key="k", max_retries=0)
    SDKS.append(sdk)
    return sdk


def claude(proxy: RunningProxy) -> anthropic.AsyncAnthropic:
    import anthropic

    url = proxy.api_url("anthropic")
    sdk = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)
    SDKS.append(sdk)
    return sdk


async def test_whole_answers(tmp_path: Path) -> None:
    with LlmServer(cached_tokens=1) as server:
        async with proxied(out=tmp_path, **apis(server.url)) as proxy:
            first = await gpt(proxy).chat.completions.create(model="gpt-4o", messages=ASKED)
            second = await claude(proxy).messages.create(
                model="claude-3-7-sonnet-latest", messages=ASKED, max_tokens=10
            )
        assert server.seen[0].headers["authorization"] == "Bearer k"
        assert {"k", "Bearer k"} & {*server.seen[1].headers.values()}
    calls = events_of(tmp_path, "model")
    assert first.usage and first.usage.prompt_tokens_details
    assert calls[0]["usage"] == {
        "input": first.usage.prompt_tokens - 1,
        "cache_read": first.usage.prompt_tokens_details.cached_tokens,
        "cache_write": None,
        "output": first.usage.completion_tokens,
        "reasoning": calls[0]["usage"]["reasoning"],
    }
    assert calls[1]["usage"]["input"] == second.usage.input_tokens
    assert calls[1]["usage"]["output"] == second.usage.output_tokens
    assert [(c["api"], c["path"], c["model"], c["status"]) for c in calls] == [
        ("openai", "/chat/completions", "gpt-4o", 200),
        ("anthropic", "/v1/messages", "claude-3-7-sonnet-latest", 200),
    ]
    (end,) = events_of(tmp_path, "task_end")
    assert (end["model_calls"], end["calls_of_unknown_usage"]) == (2, 0)
    assert end["usage"]["output"] == first.usage.completion_tokens + second.usage.output_tokens


async def test_streams_are_passed_on_and_read(tmp_path: Path) -> None:
    async with (
        model_server(pause=0.03) as server,
        proxied(out=tmp_path, **apis(server.url)) as proxy,
    ):
        start, first, text, usage = time.perf_counter(), 0.0, "", None
        stream = await gpt(proxy).chat.completions.create(
            model="gpt-4o", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                first = first or time.perf_counter() - start
                text += piece
            usage = chunk.usage or usage
        total = time.perf_counter() - start
        final = await _claude_streamed(proxy)
    assert text == "".join(WORDS) and total - first > 0.1  # the server pauses for longer
    ours, theirs = events_of(tmp_path, "model")
    assert usage and usage.completion_tokens == ours["usage"]["output"] == 21
    assert ours["usage"] == {
        "input": 400,
        "cache_read": 600,
        "cache_write": None,
        "output": 21,
        "reasoning": 5,
    }
    assert (ours["stream"], ours["model"], ours["error"]) == (True, "gpt-4o-2024-08-06", None)
    assert ours["ttft_ms"] <= 1000 * first and ours["ttft_ms"] + 100 < ours["duration_ms"]
    assert theirs["usage"] == {
        "input": final.usage.input_tokens,
        "cache_read": final.usage.cache_read_input_tokens,
        "cache_write": final.usage.cache_creation_input_tokens,
        "output": final.usage.output_tokens,
        "reasoning": None,
    }
    assert final.usage.output_tokens == 15


async def _claude_streamed(proxy: RunningProxy) -> anthropic.types.Message:
    streaming = claude(proxy).messages.stream(
        model="claude-3-7-sonnet-latest", messages=ASKED, max_tokens=10
    )
    async with streaming as stream:
        assert "".join([piece async for piece in stream.text_stream]) == "".join(WORDS)
        return await stream.get_final_message()


async def test_unknown_usage_is_null_and_counted(tmp_path: Path) -> None:
    async with model_server() as server, proxied(out=tmp_path, **apis(server.url)) as proxy:
        stream = await gpt(proxy).chat.completions.create(
            model="gpt-4o", messages=ASKED, stream=True
        )
        assert [chunk async for chunk in stream]
    (call,), (end,) = events_of(tmp_path, "model"), events_of(tmp_path, "task_end")
    assert call["usage"] is None
    assert end["calls_of_unknown_usage"] == 1
    assert end["usage"] == dict.fromkeys(end["usage"], None)


async def test_a_stream_that_ends_early_states_no_output(tmp_path: Path) -> None:
    async with model_server(cut=5) as server, proxied(out=tmp_path, **apis(server.url)) as proxy:
        with pytest.raises(Exception, match=r"peer closed connection|incomplete|not completed"):
            await _claude_streamed(proxy)
    (call,) = events_of(tmp_path, "model")
    assert call["usage"]["input"] == 25
    assert call["usage"]["output"] is None
    assert call["error"]


@pytest.mark.parametrize(("fault", "size"), [("429", 1), ("500", 3 * 2**20)])
async def test_failures_reach_the_sdk_as_they_are(tmp_path: Path, fault: str, size: int) -> None:
    """What was asked of which model is read of a call with pictures too, which passes in pieces."""
    import openai

    asked: Any = [{"role": "user", "content": "y" * size}]
    with LlmServer(script=always(fault)) as server:
        async with proxied(out=tmp_path, **apis(server.url)) as proxy:
            with pytest.raises(openai.APIStatusError) as raised:
                await gpt(proxy).chat.completions.create(
                    model="gpt-4o", messages=asked, stream=True
                )
        assert server.seen[0].payload["messages"] == asked
    (call,) = events_of(tmp_path, "model")
    assert (call["model"], call["stream"]) == ("gpt-4o", True)
    assert call["status"] == raised.value.status_code == int(fault)
    assert (call["usage"], call["error"]) == (None, f"status {fault}")


async def test_an_api_that_is_down_is_said(tmp_path: Path) -> None:
    """In a form that each SDK shows: a page in HTML is left out of openai 3's error."""
    import anthropic
    import openai

    async with proxied(out=tmp_path, **apis("http://127.0.0.1:9")) as proxy:
        with pytest.raises(openai.InternalServerError, match="does not answer") as caught:
            await gpt(proxy).chat.completions.create(model="gpt-4o", messages=ASKED)
        with pytest.raises(anthropic.InternalServerError, match="does not answer"):
            await claude(proxy).messages.create(model="c", messages=ASKED, max_tokens=10)
    body: Any = caught.value.body
    assert "does not answer" in body["message"]
    assert events_of(tmp_path, "model")[0]["status"] == -1


async def test_calls_side_by_side_are_told_apart(tmp_path: Path) -> None:
    def sized(incoming: Any) -> Outgoing | str:
        return "x" * 4 * len(incoming.payload["messages"][0]["content"])

    with LlmServer(latency=0.05, text=sized) as server:
        async with proxied(out=tmp_path, **apis(server.url)) as proxy:
            sdk = gpt(proxy)

            async def ask(size: int) -> tuple[str, int]:
                question: Any = [{"role": "user", "content": "y" * size}]
                answer = await sdk.chat.completions.create(model=f"m{size}", messages=question)
                assert answer.usage
                return f"m{size}", answer.usage.completion_tokens

            told = dict(await asyncio.gather(*(ask(size) for size in range(1, 25))))
    noted = {call["model"]: call["usage"]["output"] for call in events_of(tmp_path, "model")}
    assert noted == told == {f"m{size}": size for size in range(1, 25)}
    (end,) = events_of(tmp_path, "task_end")
    parts = end["latency"]
    assert sum(parts.values()) == pytest.approx(end["seconds"], abs=1e-3)
    assert 0.05 <= parts["model"] < 24 * 0.05  # side by side, each moment counts once


@pytest.mark.slow
@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
async def test_calls_by_the_api_s_own_address_are_told_apart(
    site: Site, tmp_path: Path, http2: bool
) -> None:
    """Eight streams side by side, over one connection with HTTP/2: no usage is lost or mixed up.

    The agent knows of the proxy as such alone, as one whose API's address cannot be set."""
    import openai

    arm = Arm("https", site)
    async with model_server(pause=0.01, numbered=True, tls=own_certificate()) as server:
        base = f"https://127.0.0.1:{server.port}/v1"
        settings = arm.settings(apis=(model_api(f"openai={base}", {}),), out=tmp_path)
        async with (
            running(settings) as proxy,
            arm.client(proxy, http2=http2) as http,
            openai.AsyncOpenAI(base_url=base, api_key="k", http_client=http, max_retries=0) as sdk,
        ):
            answered: list[str] = []

            async def note(response: httpx.Response) -> None:
                answered.append(response.http_version)

            http.event_hooks = {"response": [note]}

            async def ask(number: int) -> tuple[str, int]:
                counted = 0
                stream = await sdk.chat.completions.create(
                    model=f"m{number}",
                    messages=ASKED,
                    stream=True,
                    stream_options={"include_usage": True},
                )
                async for chunk in stream:
                    counted = chunk.usage.completion_tokens if chunk.usage else counted
                return f"m{number}", counted

            told = dict(await asyncio.gather(*(ask(number) for number in range(1, 9))))
            with pytest.raises(httpx.ProxyError, match="403"):
                await http.get("https://other.model.test/")
    assert answered == ["HTTP/2" if http2 else "HTTP/1.1"] * 8
    calls = events_of(tmp_path, "model")
    assert sorted(call["usage"]["output"] for call in calls) == sorted(told.values())
    assert told == {f"m{number}": number for number in range(1, 9)}
    assert {(call["path"], call["status"], call["error"]) for call in calls} == {
        ("/chat/completions", 200, None)
    }
    assert all(0 < call["ttft_ms"] < call["duration_ms"] for call in calls)
