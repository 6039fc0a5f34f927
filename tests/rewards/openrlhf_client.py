"""OpenRLHF's own client, and an agent of its multi-turn executor, ask the server for rewards (spec
G3, a sample)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from openrlhf.utils.agent import (
    AgentInstanceBase,
    MultiTurnAgentExecutor,
    SingleTurnAgentExecutor,
)

from tests.rewards.cases import trajectory
from trajudge.rewards.client import RewardGroup
from trajudge.rewards.trainers import openrlhf_going_on, openrlhf_step


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


GROUP = 8


class Shop(AgentInstanceBase):  # type: ignore[misc]
    """An environment whose episode ends at its second step; a label without a number never ends."""

    def __init__(self) -> None:
        self.steps = 0

    async def step(self, states: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.steps += 1
        if self.steps == 1 or not states["label"].isdecimal():
            return openrlhf_going_on("a page")
        number = int(states["label"])
        group = RewardGroup(f"openrlhf {number // GROUP}", GROUP)
        return await openrlhf_step(trajectory(number), group=group)


async def openrlhf_turns(count: int) -> list[dict[str, Any]]:
    """What the multi-turn executor made of the episodes 0, 1, ..., and of one that never ends."""
    executor = MultiTurnAgentExecutor(Shop)
    labels = [*map(str, range(count)), "endless"]
    asked = (
        executor.execute(
            "p", label, SimpleNamespace(max_tokens=4, logprobs=None), 16, Words(), OneAnswer()
        )
        for label in labels
    )
    answers = await asyncio.gather(*asked)
    names = ("reward", "scores", "extra_logs", "action_ranges")
    return [{name: one[name] for name in names} for one in answers]
