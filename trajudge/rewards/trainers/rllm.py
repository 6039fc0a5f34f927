"""rLLM: an evaluator of its episodes.

    trainer = AgentTrainer(..., evaluator=JudgedEvaluator())

An abstention is an exception. Give rLLM the evaluator itself: of a data set's verifier module
(``[verifier].module``) it takes an exception for the reward 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from trajudge.rewards.abstaining import Abstained
from trajudge.rewards.trainers.asking import RewardUnavailable, ask_reward, pushed_name

_HOMES = ("rllm.eval.types", "rllm.experimental.eval.types")  # now, and before 2026


class JudgedEvaluator:
    """Evaluates episodes by the trajectories that were pushed under ``artifacts["trajectory_id"]``
    (else ``metadata``, else the task's own). ``output`` makes the result (None: rLLM's
    ``EvalOutput``) from ``reward``, ``is_correct`` and ``metadata``."""

    def __init__(
        self, *, deadline: float = 170.0, output: Callable[..., Any] | None = None
    ) -> None:
        self.deadline = deadline
        self._output = output

    def evaluate(self, task: Any, episode: Any) -> Any:
        """Return the episode's reward.

        Raises Abstained where the judge has no value, RewardUnavailable without a server or an id.
        """
        name = _named(task, episode)
        # rLLM calls it in a thread: there is no loop to wait in.
        reward = asyncio.run(ask_reward(name, deadline=self.deadline)).reward
        if reward.value is None:
            raise Abstained(f"{name}: {reward.abstained} ({reward.detail})")
        make = self._output or _eval_output()
        told = {"probability": reward.probability, "judge": reward.judge, "version": reward.version}
        return make(reward=reward.value, is_correct=reward.verdict is True, metadata=told)


def _named(task: Any, episode: Any) -> str:
    row = task if isinstance(task, Mapping) else getattr(task, "metadata", {})
    return pushed_name("an episode and a task", episode.artifacts, episode.metadata, row)


def _eval_output() -> Callable[..., Any]:
    for home in _HOMES:
        try:
            made: Callable[..., Any] = import_module(home).EvalOutput
        except ImportError:
            continue
        return made
    raise RewardUnavailable("rLLM's EvalOutput is not there: install rllm, or give output=")
