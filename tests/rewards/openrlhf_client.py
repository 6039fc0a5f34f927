"""OpenRLHF's own client asks the server for rewards (spec G3, a sample)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from openrlhf.utils.agent import SingleTurnAgentExecutor


class Words:
    """The few things that the client asks of a tokenizer."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"input_ids": [SimpleNamespace(tolist=lambda: [1, 2])]}

    def decode(self, tokens: list[int], **_: Any) -> str:
        return " ".join(map(str, tokens))


class OneAnswer:
    """A generation engine with one reply."""

    async def generate(self, *_: Any, **__: Any) -> Any:
        reply = SimpleNamespace(token_ids=[3], text="3", finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[reply])


async def openrlhf_answers(url: str, count: int) -> list[dict[str, Any]]:
    """What the client made of the rewards of ``r0``, ``r1``, ..."""
    executor = SingleTurnAgentExecutor(url)
    settings = SimpleNamespace(max_tokens=4, logprobs=None)
    asked = (
        executor.execute("p", f"r{i}", settings, 64, Words(), OneAnswer()) for i in range(count)
    )
    answers = await asyncio.gather(*asked)
    return [{name: one[name] for name in ("reward", "scores", "extra_logs")} for one in answers]
