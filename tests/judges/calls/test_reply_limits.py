"""A judge that limits its replies means the answer: a model that thinks gets room for that, too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer
from trajudge.judges.calls.handle import single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.model import Message, Text

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
