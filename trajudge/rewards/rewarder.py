"""Rewards in process: call the judge through the engine of a run, with deadlines."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Container, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from trajudge.eval.runs.plan import ReadyJudge, ready_judge
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.eval.store.manifest import code_version
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.judging import NoModel, RecordedClient, judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.judges.registry import find_judge, split_model
from trajudge.rewards.reward import Reward, RewardFunction, reward_function
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.watch import ReferenceJudge, ReferencePoint, RewardWatch, run_name
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.tokens import counting_for, encoding_of
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle
    from trajudge.judges.engine.budget import Payments
    from trajudge.judges.engine.engine import Engines


class _EveryRequest:
    """Contains every hash: no reply is taken from the cache."""

    def __contains__(self, _: object) -> bool:
        return True


_EVERY_REQUEST = _EveryRequest()
# The manifest entries of a judge without a model, as a decision records and compares them.
_NO_MODEL: dict[str, Any] = {"model": None, "endpoint": None, "parameters": {}}


class Rewarder:
    """Judges trajectories and returns their rewards.

    Use one per process, in one event loop; for a training of several processes with one budget, use
    the server instead. Replies come from the cache and the engine of ``trajudge judge``: equal
    requests are one call, limits and budget hold over all rewards, and a killed process does not
    pay again. ``over_budget`` is True once a call exceeded the budget. Use it as an asynchronous
    context manager, or close it with ``aclose``.
    """

    def __init__(
        self, config: RewardConfig, *, spent: float = 0.0, payments: Payments | None = None
    ) -> None:
        """Prepare the judge and its reward function.

        ``spent`` is the part of the budget that is already used, in US dollars; ``payments``
        records further costs. Raises UserError for invalid settings, which include a budget in each
        of several ranks.
        """
        if payments is None:
            _refuse_budget_by_rank(config)
        self.config = config
        self.over_budget = False
        self._spent, self._payments = spent, payments
        self._judge = _ready(config.judge, config.calls)
        self._model = self._judge.model
        self._reference = _reference(config)
        manifest = {
            "prompt_hash": self._judge.prompt_hash,
            "options": self._judge.options,
            "samples": 1,
            "version": code_version(),
            **(self._model.manifest if self._model else _NO_MODEL),
        }
        self.function: RewardFunction = reward_function(config, self._judge.id, manifest)
        self._engines: Engines | None = None
        self._tasks: set[asyncio.Task[Judgment]] = set()
        reference = self._reference
        compared = reference and ReferenceJudge(reference.id, self._judge_by_reference)
        self.watch = RewardWatch(
            config.watch, self.function.version, self._judge_uncached, compared
        )

    @property
    def stopped(self) -> bool:
        """Whether the watch stopped the rewards."""
        return self.watch.monitor.stopped

    async def reference(self, before: int) -> ReferencePoint | None:
        """Return the reference judge's point of the last step before this one."""
        return self.watch.monitor.curve.before(before)

    async def reward(
        self,
        trajectory: Trajectory,
        *,
        deadline: float | None = None,
        name: str | None = None,
        step: int | None = None,
    ) -> Reward:
        """Judge a trajectory within ``deadline`` seconds (None: the settings').

        ``name`` is the id for audits of the reward (None: its ``run_name``), ``step`` the
        training's step. After the watch stopped the rewards, they abstain as "drift". At the
        deadline the reward abstains as "late" while the judge continues, so that a later request is
        answered from the cache. Raises UserError if no judge can be called, such as without a key.
        """
        monitor = self.watch.monitor
        if monitor.stopped:
            return self.function.abstention(trajectory.key, "drift", monitor.reason, 0.0)
        reward = await self._judge_within(trajectory, deadline)
        self.watch.add(name or run_name(trajectory), trajectory, reward, step)
        return reward

    async def _judge_within(self, trajectory: Trajectory, deadline: float | None) -> Reward:
        started = time.monotonic()
        task = asyncio.create_task(self._judge_run(trajectory))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        limit = self.config.deadline if deadline is None else deadline
        await asyncio.wait({task}, timeout=limit)
        seconds = time.monotonic() - started
        if not task.done():
            late = f"after {seconds:.1f} s"
            return self.function.abstention(trajectory.key, "late", late, seconds)
        try:
            return self.function(task.result(), seconds=seconds)
        except BudgetSpent as error:
            self.over_budget = True
            return self.function.abstention(trajectory.key, "over_budget", str(error), seconds)

    async def group(
        self, trajectories: Sequence[Trajectory], *, deadline: float | None = None
    ) -> list[Reward]:
        """Judge the trajectories of one task concurrently; return their rewards in order."""
        rewards = (self.reward(one, deadline=deadline) for one in trajectories)
        return list(await asyncio.gather(*rewards))

    async def _judge_uncached(self, trajectory: Trajectory) -> Judgment:
        """Judge a trajectory without the cache."""
        return await self._judge_run(trajectory, refresh=_EVERY_REQUEST)

    async def _judge_by_reference(self, trajectory: Trajectory) -> Judgment:
        """Judge a trajectory with the reference judge."""
        return await self._judge_run(trajectory, self._reference)

    async def _judge_run(
        self,
        trajectory: Trajectory,
        judge: ReadyJudge | None = None,
        *,
        refresh: Container[str] = (),
    ) -> Judgment:
        ready = judge or self._judge
        model = ready.model
        client: RecordedClient = NoModel()
        if model is not None:
            client = model.ask(self._open_engines(model), 0, refresh=refresh)
        with counting_for(encoding_of(model.model) if model else None):
            return await judge_trajectory(
                ready.id, ready.judge, trajectory, client, needs=ready.needs
            )

    def _open_engines(self, model: ModelHandle) -> Engines:
        """Return the engines of all models, with one budget, one cache and one limit per
        endpoint."""
        if self._engines is None:
            models = [one.model for one in (self._judge, self._reference) if one and one.model]
            others = {
                f"{n} {role}": h for n, m in enumerate(models) for role, h in m.others.items()
            }
            others |= {f"{n}": m for n, m in enumerate(models)}
            every = replace(model, others=others)
            self._engines = every.open_engines(self._spent, self._payments)
        return self._engines

    def _ended(self, task: asyncio.Task[Judgment]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # of a late task nobody retrieves it, which asyncio would log

    async def aclose(self) -> None:
        """Cancel the running tasks and close the connections."""
        await self.watch.aclose()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._engines is not None:
            await self._engines.close()
            self._engines = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _ready(judge: JudgeConfig, calls: CallConfig) -> ReadyJudge:
    """Prepare a judge; a model that it does not use is ignored. Raises UserError."""
    if not find_judge(judge.judge).needs_model and not find_judge(judge.judge).composed:
        judge = judge.model_copy(update={"model": None})
    elif judge.model is None:
        raise UserError(f"judge {judge.judge} needs a model: name it")
    return ready_judge(judge, calls)


def _reference(config: RewardConfig) -> ReadyJudge | None:
    """Prepare the reference judge. Raises UserError."""
    if config.watch.reference is None:
        return None
    name, model = split_model(config.watch.reference)
    try:
        return _ready(JudgeConfig(judge=name, model=model or None), config.calls)
    except UserError as error:
        raise UserError(f"--reference {config.watch.reference}: {error}") from error


def _refuse_budget_by_rank(config: RewardConfig) -> None:
    """Raise UserError if each of several ranks would spend the budget."""
    ranks = os.environ.get("WORLD_SIZE", "1")
    if config.calls.max_cost is not None and ranks.isdecimal() and int(ranks) > 1:
        raise UserError(
            f"max_cost {config.calls.max_cost:g} would hold in each of the {ranks} ranks of this "
            "training on its own: start  trajudge serve --max-cost  once, and let the ranks ask it"
        )
