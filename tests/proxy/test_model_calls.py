"""Model calls through both back ends, by the SDK: what it reads, and what is noted."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.proxy.arms import Arm
from tests.proxy.model_server import WORDS, model_server
from tests.proxy.site import events_of
from tests.proxy.tls import own_certificate
from trajudge.proxy.commands import model_api
from trajudge.proxy.process import running

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.anyio
ASKED: Any = [{"role": "user", "content": "Shall I?"}]
WITH_USAGE: Any = {"stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.slow
async def test_a_stream_is_passed_on_and_read(arm: Arm, tmp_path: Path) -> None:
    import openai  # collecting every test would pay for it

    async with model_server(pause=0.03) as server:
        apis = (model_api(f"openai={server.url}/v1", {}),)
        async with (
            running(arm.settings(apis=apis, out=tmp_path)) as proxy,
            openai.AsyncOpenAI(base_url=proxy.api_url("openai"), api_key="k", max_retries=0) as sdk,
        ):
            first, total, text = await _streamed(sdk)
    (call,) = events_of(tmp_path, "model")
    assert text == "".join(WORDS) and total - first > 0.1  # the server pauses for longer
    assert (call["usage"]["input"], call["usage"]["output"]) == (400, 21)
    assert call["ttft_ms"] <= 1000 * first and call["ttft_ms"] + 100 < call["duration_ms"]


async def _streamed(sdk: openai.AsyncOpenAI) -> tuple[float, float, str]:
    start, first, text = time.perf_counter(), 0.0, ""
    stream = await sdk.chat.completions.create(model="gpt-4o", messages=ASKED, **WITH_USAGE)
    async for chunk in stream:
        if chunk.choices and (piece := chunk.choices[0].delta.content):
            first = first or time.perf_counter() - start
            text += piece
    return first, time.perf_counter() - start, text


@pytest.mark.slow
@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
async def test_calls_by_the_api_s_own_address_are_told_apart(
    site: Any, tmp_path: Path, http2: bool
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
                    model=f"m{number}", messages=ASKED, **WITH_USAGE
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
