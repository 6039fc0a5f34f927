"""Rewards in process: a judge asked through the engine of a run, with deadlines."""

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
    """Holds every hash: all requests are asked again."""

    def __contains__(self, _: object) -> bool:
        return True


_EVERY_REQUEST = _EveryRequest()
# What a run's manifest says of a judge that asks none; a decision records it, and compares.
_NO_MODEL: dict[str, Any] = {"model": None, "endpoint": None, "parameters": {}}


class Rewarder:
    """Gives trajectories their rewards; one a process, used in one event loop, and of a training of
    several processes the server's alone where its budget is to hold for all.

    Replies come from the cache and the engine of ``trajudge judge``: equal requests are one call,
    limits and budget hold over all rewards, and a process that is killed pays nothing twice.
    ``over_budget`` once a call did not fit into the budget. Use it as an asynchronous context
    manager, or close it with ``aclose``.
    """

    def __init__(
        self, config: RewardConfig, *, spent: float = 0.0, payments: Payments | None = None
    ) -> None:
        """Make the judge and its reward function; ``spent`` dollars of the budget are gone, and
        ``payments`` takes down what is paid. Raises UserError for what cannot work, a budget in
        each of several ranks included."""
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
        self._at_work: set[asyncio.Task[Judgment]] = set()
        reference = self._reference
        compared = reference and ReferenceJudge(reference.id, self._by_reference)
        self.watch = RewardWatch(config.watch, self.function.version, self._asked_again, compared)

    @property
    def stopped(self) -> bool:
        """Whether the watch stopped the rewards."""
        return self.watch.monitor.stopped

    async def reference(self, before: int) -> ReferencePoint | None:
        """Return what the reference judge said of the last step before this one."""
        return self.watch.monitor.curve.before(before)

    async def reward(
        self,
        trajectory: Trajectory,
        *,
        deadline: float | None = None,
        name: str | None = None,
        step: int | None = None,
    ) -> Reward:
        """Judge a trajectory of the training's ``step`` within ``deadline`` seconds (None: the
        settings').

        ``name`` is the id under which its reward may be audited (None: its ``run_name``). Once the
        watch says that rewards cannot be trusted, they abstain as "drift". At the deadline the
        reward abstains as "late"; the judge goes on, so that asking again finds its replies in the
        cache.
        Raises UserError where no reward can be had at all: no key, no server.
        """
        monitor = self.watch.monitor
        if monitor.stopped:
            return self.function.abstention(trajectory.key, "drift", monitor.reason, 0.0)
        reward = await self._within(trajectory, deadline)
        self.watch.add(name or run_name(trajectory), trajectory, reward, step)
        return reward

    async def _within(self, trajectory: Trajectory, deadline: float | None) -> Reward:
        started = time.monotonic()
        task = asyncio.create_task(self._judged(trajectory))
        self._at_work.add(task)
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
        """Judge the trajectories of one task at once; their rewards, in order."""
        rewards = (self.reward(one, deadline=deadline) for one in trajectories)
        return list(await asyncio.gather(*rewards))

    async def _asked_again(self, trajectory: Trajectory) -> Judgment:
        """Judge a trajectory past the cache."""
        return await self._judged(trajectory, refresh=_EVERY_REQUEST)

    async def _by_reference(self, trajectory: Trajectory) -> Judgment:
        """Judge a trajectory by the reference judge."""
        return await self._judged(trajectory, self._reference)

    async def _judged(
        self,
        trajectory: Trajectory,
        judge: ReadyJudge | None = None,
        *,
        refresh: Container[str] = (),
    ) -> Judgment:
        made = judge or self._judge
        client: RecordedClient = NoModel()
        if made.model is not None:
            client = made.model.ask(self._open_engines(made.model), 0, refresh=refresh)
        with counting_for(encoding_of(made.model.model) if made.model else None):
            return await judge_trajectory(made.id, made.judge, trajectory, client, needs=made.needs)

    def _open_engines(self, model: ModelHandle) -> Engines:
        """Return the engines of all models that are asked: one budget, one cache, and one limit for
        each endpoint."""
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
        self._at_work.discard(task)
        if not task.cancelled():
            task.exception()  # of a late one nobody asks: without this asyncio prints it

    async def aclose(self) -> None:
        """End what is at work and close the connections."""
        await self.watch.aclose()
        for task in list(self._at_work):
            task.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)
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
    """Make the judge; a model that it does not ask is left out. Raises UserError."""
    if not find_judge(judge.judge).needs_model and not find_judge(judge.judge).composed:
        judge = judge.model_copy(update={"model": None})
    elif judge.model is None:
        raise UserError(f"judge {judge.judge} asks a model: name it")
    return ready_judge(judge, calls)


def _reference(config: RewardConfig) -> ReadyJudge | None:
    """Make the reference judge. Raises UserError."""
    if config.watch.reference is None:
        return None
    name, model = split_model(config.watch.reference)
    try:
        return _ready(JudgeConfig(judge=name, model=model or None), config.calls)
    except UserError as error:
        raise UserError(f"--reference {config.watch.reference}: {error}") from error


def _refuse_budget_by_rank(config: RewardConfig) -> None:
    """Refuse a budget that each of several ranks would spend. Raises UserError."""
    ranks = os.environ.get("WORLD_SIZE", "1")
    if config.calls.max_cost is not None and ranks.isdecimal() and int(ranks) > 1:
        raise UserError(
            f"max_cost {config.calls.max_cost:g} would hold in each of the {ranks} ranks of this "
            "training on its own: start  trajudge serve --max-cost  once, and let the ranks ask it"
        )
