"""OpenRLHF's own client, and an agent of its multi-turn executor, ask the server for rewards (spec
G3, a sample)."""

from __future__ import annotations

import asyncio
import itertools
from types import SimpleNamespace
from typing import Any

from openrlhf.utils.agent import SingleTurnAgentExecutor

from tests.rewards.cases import block_of


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


class Turns(OneAnswer):
    """An engine that acts once and then stops; ``endless`` never does."""

    def __init__(self, *, endless: bool) -> None:
        self.words = itertools.repeat("click") if endless else iter(["click", "stop"])

    async def generate(self, *given: Any, **more: Any) -> Any:
        answered = await super().generate(*given, **more)
        answered.outputs[0].text = next(self.words)
        return answered


async def openrlhf_turns(count: int) -> list[dict[str, Any]]:
    """What the executor of the guide made of the episodes 0, 1, ..., and of one that never ends."""
    names: dict[str, Any] = {}
    exec(compile(block_of("trainers.md", "AgentExecutor"), "trainers.md", "exec"), names)
    asked = (
        names["AgentExecutor"]().execute(
            f"Do task {number}",
            f"t{number}",
            SimpleNamespace(max_tokens=4, logprobs=None),
            16,
            Words(),
            Turns(endless=number == count),
        )
        for number in range(count + 1)
    )
    answers = await asyncio.gather(*asked)
    shown = ("reward", "scores", "extra_logs", "action_ranges")
    return [{name: one[name] for name in shown} for one in answers]
