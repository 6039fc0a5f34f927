"""The judgments that a run has still to make, and the workers that judge many trajectories
at once.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, groupby, islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from trajudge.eval.runs.plan import RunPlan, strict_stop
from trajudge.eval.store.labels import RewardColumns, Rewards, RunRewards
from trajudge.eval.store.table import (
    STATUS_CODE,
    JudgmentTable,
    KeyColumns,
    KeyPlaces,
    joined,
    places_among,
)
from trajudge.eval.store.task_goals import goal_digest
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import Bools, Ints
from trajudge.trajectories.actions import holds_answer
from trajudge.trajectories.model import REPEAT, Trajectory, TrajectoryKey, Unreadable
from trajudge.util.commands import INTERRUPTED

MOST_AHEAD = 64  # trajectories in memory whose other samples are still to come

_APART = 10_000  # samples between the draws of a trajectory and those of its repeat


class JudgmentJob(NamedTuple):
    """One judgment to make: ``sample`` counts repeated judgments of a trajectory from 0. ``item``
    is the trajectory, or why it could not be read."""

    key: TrajectoryKey
    item: Trajectory | Unreadable
    sample: int

    @property
    def draw(self) -> int:
        """The sample index of its requests: a trajectory that is there to be asked about again
        (``REPEAT``) draws anew, where the first one's reply would be in the cache."""
        repeat = self.item.metadata.get(REPEAT) if isinstance(self.item, Trajectory) else None
        return self.sample + _APART * repeat if isinstance(repeat, int) else self.sample


@dataclass
class LoadReport:
    """What the files gave besides jobs: the official ``rewards`` of the trajectories that were
    read. Those that are not read for the judge are read where ``earlier`` lacks their reward.
    ``unsent`` counts those whose answer no action holds, where the judge reads it there alone. A
    report belongs to one ``jobs_of``."""

    earlier: Rewards = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    repeated: list[TrajectoryKey] = field(default_factory=list)
    unsent: int = 0
    _places: array[int] = field(default_factory=lambda: array("q"))
    _rewards: array[float] = field(default_factory=lambda: array("d"))
    _goals: array[int] = field(default_factory=lambda: array("q"))

    def add_reward(self, place: int, reward: float | None, goal: int = 0) -> None:
        """Note the reward of the trajectory at this place of the plan's keys, and the digest of its
        goal."""
        self._places.append(place)
        self._goals.append(goal)
        self._rewards.append(np.nan if reward is None else reward)

    def goals(self, keys: KeyColumns) -> tuple[KeyColumns, Ints]:
        """Return the digests of the goals that were noted so far, ``keys`` the plan's."""
        return keys.at(np.array(self._places)), np.array(self._goals)

    def rewards(self, keys: KeyColumns) -> RunRewards:
        """Return the rewards that were noted so far, ``keys`` the plan's."""
        places = np.array(self._places, dtype=np.int64)
        return RunRewards(RewardColumns(keys.at(places), np.array(self._rewards)))

    def add(self, other: LoadReport, places: Ints) -> None:
        """Take in the report on some keys, which have these places among those of the plan."""
        self._places.extend(places[np.array(other._places, dtype=np.int64)].tolist())
        self._rewards.extend(other._rewards)
        self._goals.extend(other._goals)
        self.unreadable += other.unreadable
        self.repeated += other.repeated
        self.unsent += other.unsent


def with_unreached(rewards: Rewards, keys: KeyColumns, judged: KeyColumns) -> Rewards:
    """Add those of ``keys`` that a run which ends early has not come to, with an unknown reward:
    they count against its coverage."""
    known = RewardColumns.of(rewards)
    unreached = places_among(keys, joined([known.keys, judged])) < 0
    if not unreached.any():
        return rewards
    reward = np.concatenate([known.reward, np.full(int(unreached.sum()), np.nan)])
    return RunRewards(RewardColumns(joined([known.keys, keys.at(unreached)]), reward))


def without_unreached(rewards: Rewards, judged: KeyColumns) -> Rewards:
    """Leave out what ``with_unreached`` added in an earlier session."""
    known = RewardColumns.of(rewards)
    reached = ~np.isnan(known.reward) | (places_among(known.keys, judged) >= 0)
    if reached.all():
        return rewards
    return RunRewards(RewardColumns(known.keys.at(reached), known.reward[reached]))


def jobs_done(plan: RunPlan, judgments: JudgmentTable) -> Bools:
    """Tell which of the samples of the plan's keys need not be judged again, (K, samples).
    ``--strict`` reads what was skipped again, which may still be unreadable."""
    row = places_among(judgments.keys, plan.keys)
    counted = (row >= 0) & (judgments.sample < plan.run.samples)
    if plan.run.retry_failed:
        counted &= judgments.ok()
    if plan.data.strict:
        counted &= judgments.status != STATUS_CODE[Status.SKIPPED]
    done = np.zeros((len(plan.keys), plan.run.samples), dtype=bool)
    done[row[counted], judgments.sample[counted]] = True
    return done


def jobs_of(plan: RunPlan, done: Bools, report: LoadReport) -> Iterator[JudgmentJob]:
    """Yield the jobs that are not ``done`` (K, samples) in the order of the files; a trajectory is
    read only if something of it is missing. Raises UserError at the first one that cannot be read
    under ``--strict``.

    Where a model is asked, the first sample of a trajectory comes some trajectories before its
    others. When they ask with the same prompt, the provider has it in its cache: a read costs a
    fraction of the first time, and samples that are asked together would each pay for the first
    time.
    """
    jobs = _jobs_in_order(plan, done, report)
    if plan.model and plan.run.samples > 1:
        return first_samples_ahead(jobs, min(plan.calls.concurrency, MOST_AHEAD))
    return jobs


def _jobs_in_order(plan: RunPlan, done: Bools, report: LoadReport) -> Iterator[JudgmentJob]:
    left = ~done
    wanted = KeyPlaces(plan.keys, places_to_read(plan.keys, left, report))
    if not len(wanted):
        return
    read = np.zeros(len(plan.keys), dtype=bool)
    for item in plan.source.read(wanted.__contains__, plan.needs):
        if isinstance(item, Unreadable):
            if plan.data.strict:
                raise strict_stop(item)
            report.unreadable.append(item)
        key = item.key
        if key is None or (place := wanted.find(key)) is None:
            continue
        if read[place]:
            report.repeated.append(key)
            continue
        read[place] = True
        if isinstance(item, Trajectory):
            report.add_reward(place, item.official_reward, goal_digest(item))
            if plan.answer_options and left[place].any():
                report.unsent += _is_unsent(item)
        for sample, is_left in enumerate(left[place].tolist()):
            if is_left:
                yield JudgmentJob(key, item, sample)


def places_to_read(keys: KeyColumns, left: Bools, report: LoadReport) -> Ints:
    """Return the places of ``keys`` of which a sample is left, (K, samples), or whose official
    reward is not known."""
    some = left.any(axis=1)
    some |= places_among(keys, RewardColumns.of(report.earlier).keys) < 0
    return np.flatnonzero(some)


def _is_unsent(run: Trajectory) -> bool:
    actions = [step.action for step in run.steps]
    return run.answer is not None and not holds_answer(actions, run.answer)


def first_samples_ahead(jobs: Iterator[JudgmentJob], ahead: int) -> Iterator[JudgmentJob]:
    """Yield the first sample of a trajectory ``ahead`` trajectories before its others."""
    waiting: deque[list[JudgmentJob]] = deque()
    for _, samples in groupby(jobs, key=lambda job: job.key):
        first, *others = samples
        yield first
        waiting.append(others)
        if len(waiting) > ahead:
            yield from waiting.popleft()
    for others in waiting:
        yield from others


def skipped(judge_id: str, key: TrajectoryKey, sample: int, item: Unreadable) -> Judgment:
    """Make the judgment on a trajectory whose file could not be read."""
    detail = f"{item.source}: {item.reason}"
    return Judgment(key=key, judge=judge_id, sample=sample, status=Status.SKIPPED, detail=detail)


_CULPRITS = {
    Status.UNPARSABLE: "unparsable",
    Status.TRUNCATED: "length",
    Status.REFUSED: "refused",
    Status.CONTEXT_OVERFLOW: "context_overflow",
}


def to_refresh(earlier: Judgment | None) -> frozenset[str]:
    """Return the requests that made an earlier judgment fail: they are asked again, the others are
    not.

    Where the ledger does not tell which reply it was, all of them.
    """
    if earlier is None or earlier.status not in _CULPRITS:
        return frozenset()
    culprits = {c.request for c in earlier.calls if c.finish == _CULPRITS[earlier.status]}
    return frozenset(culprits or {call.request for call in earlier.calls})


J = TypeVar("J")

R = TypeVar("R")

MOMENT = 0.01  # seconds

AHEAD = 0.5  # of the calls at once: jobs beside them whose prompts and replies are being handled

COLLECT_EVERY = 10_000  # objects more than there were, where Python's default is 700

MOST_DRAWN = 32  # jobs at once: the first are sent before the last are drawn

QUICK = 0.001  # seconds of drawing that the loop does itself: a thread beside it costs more

MOST_IN_THREAD = 1_024  # draws, before the loop tries again


def workers_for(concurrency: int) -> int:
    """Return how many workers keep ``concurrency`` calls under way.

    A reply is committed, parsed and recorded, and the next prompt rendered, before its worker
    calls again: with no more workers than calls, that many fewer calls are under way meanwhile.
    """
    return concurrency + round(AHEAD * concurrency)


class Interrupted(Exception):
    """The user pressed Ctrl-C once: nothing new is asked, what is under way is finished."""


class Waiting(Interrupted):
    """Answers of the run come later (batches are under way), and this session does not wait."""


class StopSignal:
    """Why a run ends early; ``reason`` is None as long as it goes on."""

    def __init__(self) -> None:
        self.reason: BudgetSpent | Interrupted | None = None
        self._listeners: list[Callable[[Interrupted], None]] = []

    def interrupt(self, reason: Interrupted | None = None) -> None:
        """Begin nothing new, and tell whoever listens. Belongs into the thread of the loop."""
        self.reason = interrupted = reason or Interrupted("interrupted")
        for tell in self._listeners:
            tell(interrupted)

    @contextmanager
    def heard_by(self, listener: Callable[[Interrupted], None] | None) -> Iterator[None]:
        """Call ``listener`` (None: nobody) at an interruption while the block runs."""
        if listener is None:
            yield
            return
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def forget_run(self) -> None:
        """Go on after a run that ended for a reason of its own: one whose budget is spent, for the
        next may need no call, or that waits for its answers."""
        if isinstance(self.reason, BudgetSpent | Waiting):
            self.reason = None


async def judge_all(
    jobs: Iterator[J],
    judge_one: Callable[[J], Awaitable[R]],
    *,
    width: int,
    record: Callable[[R], None],
    stop: StopSignal,
) -> None:
    """Make every judgment, at most ``width`` at once, and hand each to ``record`` as it comes.

    Workers are begun as jobs come, so that a width beyond the jobs costs nothing. The iterator is
    advanced in a thread where that takes long, so that reading files does not hold up replies. Once
    ``stop`` has a reason no job is begun; what was under way is still recorded. Raises the first
    error of a job or of the iterator that is not itself a reason to stop.
    """
    queue, begun = _Queue(jobs, ahead=width // 2), count(1)

    async def work() -> None:
        may_begin = next(begun) < width
        while stop.reason is None:
            job = await queue.next()
            if job is None:
                return
            if may_begin:
                group.create_task(work())
                may_begin = False
            try:
                record(await judge_one(job))
            except (BudgetSpent, Interrupted) as reason:
                # A call may give up for an earlier reason than the one that counts by now.
                stop.reason = stop.reason or reason

    try:
        with rare_collections():
            async with asyncio.TaskGroup() as group:
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cyclic garbage seldom while the block runs, and not among what was there before.

    What a judgment leaves is freed by reference counts; to search all modules and trajectories for
    cycles every few hundred objects takes a quarter of a judgment's time.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < COLLECT_EVERY:  # another run's block, or the user's own choice
        yield
        return
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class _Queue(Generic[J]):
    """Draws jobs for all workers that wait for one at once: a thread that competes with a busy loop
    is slow to start, and one job each time would bound the rate of a run. Workers that waited go on
    together, so that what they do becomes one commit.

    Jobs that are drawn in a moment are drawn on the loop. After one that was not, the next ones are
    drawn in a thread, each time twice as many before the loop tries again.
    """

    def __init__(self, jobs: Iterator[J], ahead: int) -> None:
        self._jobs = jobs
        self._ahead = ahead
        self._drawn: deque[J] = deque()
        self._more = asyncio.Event()
        self._is_drawing = self._is_at_end = False
        self._waiting = 0
        self._in_thread, self._next_in_thread = 0, 1  # draws

    async def next(self) -> J | None:
        """Return the next job, None at the end."""
        while not self._drawn and not self._is_at_end:
            if not self._is_drawing:
                await self._draw()
                continue
            self._waiting += 1
            try:
                await self._more.wait()
            finally:
                self._waiting -= 1
        return self._drawn.popleft() if self._drawn else None

    async def _draw(self) -> None:
        self._is_drawing = True
        self._more.clear()
        try:
            jobs, most = self._jobs, min(max(self._waiting + 1, self._ahead), MOST_DRAWN)
            if self._in_thread:
                self._in_thread -= 1
                some = await asyncio.to_thread(some_of, jobs, most, MOMENT)
            else:
                some = self._on_loop(jobs, most)
            self._drawn.extend(some)
            self._is_at_end = not some
        finally:
            self._is_drawing = False
            self._more.set()

    def _on_loop(self, jobs: Iterator[J], most: int) -> list[J]:
        """Draw here, and decide by the time that it takes where the next ones are drawn."""
        started = time.monotonic()
        some = some_of(jobs, most, QUICK)
        if time.monotonic() - started <= 2 * QUICK:  # so no job alone takes long
            self._next_in_thread = 1
        else:
            self._in_thread = self._next_in_thread
            self._next_in_thread = min(2 * self._next_in_thread, MOST_IN_THREAD)
        return some


def some_of(jobs: Iterator[J], most: int, seconds: float) -> list[J]:
    """Draw at most so many, or as can be read in that time: the first is not kept waiting for
    large files behind it."""
    until = time.monotonic() + seconds
    some: list[J] = []
    for job in islice(jobs, most):
        some.append(job)
        if time.monotonic() > until:
            break
    return some


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, and of groups in it."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def graceful_interrupt(stop: StopSignal) -> Iterator[None]:
    """Interrupt ``stop`` at the first Ctrl-C, cancel the task at the second, and end the process
    at the third, which loses nothing that was answered. SIGTERM is a Ctrl-C."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("graceful_interrupt belongs into a task")
    steps: Iterator[Callable[[], object]]

    def come() -> None:
        next(steps, _end)()

    steps = iter((stop.interrupt, task.cancel))
    earlier = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, come)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, earlier[number])


def _end() -> None:
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def run_interruptible(work: Coroutine[Any, Any, R]) -> R:
    """Run the work as ``asyncio.run`` does. Raises KeyboardInterrupt if the work was cancelled by a
    second Ctrl-C."""
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, as Ctrl-C does (in the main thread: elsewhere no signal
    arrives)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)
