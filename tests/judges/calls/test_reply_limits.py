"""A judge that limits its replies means the answer: a model that thinks gets room for that, too."""

from __future__ import annotations

import asyncio
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from tests.judges.adapters.requests import PICTURE
from tests.llm_server import LlmServer
from trajudge.judges.calls.handle import expected_usage, most_usage, single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.model import Message, Request, Text, Usage
from trajudge.trajectories.tokens import count_tokens, counting_for, encoding_of
from trajudge.util.errors import UserError

QUESTION = [Message(role="user", parts=(Text(text="Did it succeed?"),))]


def limits_sent(model: str, folder: Path, judges_own: list[int], **options: Any) -> list[int]:
    """The limits that reach a server on loopback where a judge limits its replies so."""

    async def main() -> None:
        engines = handle.open_engines(spent=0.0)
        try:
            for sample, limit in enumerate(judges_own):
                await handle.ask(engines, sample, refresh=())(QUESTION, max_tokens=limit)
        finally:
            await engines.close()

    with LlmServer() as server:
        url = f"{server.url}/v1"
        calls = CallConfig(base_url=url, adapter="http", cache=str(folder / "cache"), **options)
        handle = single_model(model, calls)
        asyncio.run(main())
        payloads = [seen.payload for seen in server.seen if seen.payload.get("messages")]
    return [sent.get("max_tokens") or sent["max_completion_tokens"] for sent in payloads]


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        ("gpt-4o", {}, [4, 4096]),
        ("o3", {}, [16_000, 16_000]),
        ("o3", {"max_tokens": 500}, [500, 4096]),
        ("gpt-4o", {"reasoning_effort": "high"}, [16_000, 16_000]),
        ("o3", {"max_tokens": 30_000}, [30_000, 30_000]),
    ],
)
def test_a_judges_own_limit_leaves_room_for_thoughts(
    model: str, options: dict[str, Any], sent: list[int], tmp_path: Path
) -> None:
    assert limits_sent(model, tmp_path, [4, 4096], **options) == sent


@pytest.mark.parametrize(("model", "margin"), [("gpt-4o", 1.2), ("claude-sonnet-4-5", 1.6)])
def test_what_a_request_is_expected_to_take_and_at_most(model: str, margin: float) -> None:
    """Four tokens a message, and as many again at most; a picture by its formula."""
    messages = tuple(Message(role="user", parts=(Text(text=""),)) for _ in range(3))
    empty = Request(endpoint="e", model=model, messages=messages)
    assert expected_usage(empty, "anthropic", 1_000) == Usage(input=12, output=400)
    assert expected_usage(empty, "anthropic", 399) == Usage(input=12, output=399)
    assert most_usage(empty, "anthropic", 777) == Usage(input=16, output=777)
    shown = Message(role="user", parts=(PICTURE, PICTURE))
    pictured = empty.model_copy(update={"messages": (shown,), "parameters": {"max_tokens": 5}})
    assert expected_usage(pictured, "anthropic", 9) == Usage(input=4 + 2, output=9)
    assert most_usage(pictured, "anthropic", 777) == Usage(input=8 + 2, output=5)
    text = "The agent bought one red mug. " * 100
    said = empty.model_copy(update={"messages": (Message(role="user", parts=(Text(text=text),)),)})
    with counting_for(encoding_of(model)):
        counted = count_tokens(text)
    assert most_usage(said, "anthropic", 777).input == 8 + ceil(counted * margin)


def test_a_window_that_a_reply_fills_has_no_room_for_a_prompt(tmp_path: Path) -> None:
    def made(**options: Any) -> int:
        own = {"base_url": "http://127.0.0.1:9/v1", "cache": str(tmp_path / "c"), **options}
        return single_model(own.pop("model", "gpt-4o"), CallConfig(**own)).window.tokens

    assert made(context=1_025) == 1_025
    with pytest.raises(UserError, match="its window of 1,024 tokens has no room for a prompt"):
        made(context=1_024)
    assert made() == 128_000, "the table's, where the server cannot be asked"
    assert made(model="own-model", dry_run=True) == 32_768
    with pytest.raises(UserError, match="the window of 'own-model' is not known"):
        made(model="own-model")
