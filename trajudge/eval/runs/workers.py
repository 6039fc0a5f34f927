"""Judging many trajectories at once: a fixed number of workers draw jobs from a lazy iterator."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import Any, Generic, TypeVar

from trajudge.judges.engine.budget import BudgetSpent
from trajudge.trajectories.util.exits import INTERRUPTED

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
    jobs: Iterator[J] | AsyncIterator[Sequence[J]],
    judge_one: Callable[[J], Awaitable[R]],
    *,
    width: int,
    record: Callable[[R], None],
    stop: StopSignal,
) -> None:
    """Make every judgment, at most ``width`` at once, and hand each to ``record`` as it comes.

    Workers are begun as jobs come, so that a width beyond the jobs costs nothing. The iterator is
    advanced in a thread where that takes long, so that reading files does not hold up replies; an
    asynchronous one yields lists of jobs, never an empty one. Once ``stop`` has a reason no job is
    begun; what was under way is still recorded. Raises the first error of a job or of the iterator
    that is not itself a reason to stop.
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
        raise _first(errors) from None


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

    def __init__(self, jobs: Iterator[J] | AsyncIterator[Sequence[J]], ahead: int) -> None:
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
            some: Sequence[J]
            if isinstance(jobs, AsyncIterator):
                some = await anext(jobs, [])
            elif self._in_thread:
                self._in_thread -= 1
                some = await asyncio.to_thread(some_of, jobs, most, MOMENT)
            else:
                some = self._on_loop(jobs, most)
            self._drawn.extend(some)
            self._is_at_end = not some
        finally:
            self._is_drawing = False
            self._more.set()

    def _on_loop(self, jobs: Iterator[J], most: int) -> Sequence[J]:
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


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
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
