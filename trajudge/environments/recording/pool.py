"""Doing many jobs: one after another, in several processes, or in several threads, each with a
browser and a server of its own. What a job gives does not depend on which of these it is."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing import get_context
from queue import SimpleQueue
from typing import Literal, NamedTuple, TypeVar

from trajudge.environments.agents.protocol import Halted, Job, NotPlayed
from trajudge.environments.recording.fault_proxy import FaultArm
from trajudge.environments.recording.recorder import Recorder, open_recorder
from trajudge.util.machine import cancelled, follow_parent
from trajudge.util.terminal import one_line

T = TypeVar("T")
TRIES = 2  # of a job that fails for no known reason, the second in a fresh browser
Work = Callable[[Recorder, Job], T]
Keep = Callable[[Job, T], None]
RecorderArguments = tuple[int, FaultArm | None]  # a seed, and the faults that runs meet


class FailedJob(NamedTuple):
    """A job that gave nothing, and why."""

    job: Job
    reason: str


def for_all(
    jobs: Sequence[Job],
    work: Work[T],
    keep: Keep[T],
    *,
    seed: int,
    workers: int = 1,
    arm: FaultArm | None = None,
    side_by_side: Literal["processes", "threads"] = "processes",
    halt: Callable[[], None] = lambda: None,
) -> list[FailedJob]:
    """Do ``work`` for every job and hand what it gives to ``keep`` as it ends; returns the jobs
    that failed, in their order.

    For processes ``work`` is a function of a module. A job that fails is tried again in a fresh
    browser; the others go on. Raises what ``launch`` raises and Halted, after which
    nothing is begun any more; what was kept stays. The browsers are behind a proxy that carries out
    the faults of the ``arm``, if one is given. ``halt`` is called when that happens, or on
    Ctrl-C, to bring jobs that are under way to an end.
    """
    if workers == 1 or len(jobs) < 2:
        failed = _in_turn(jobs, work, keep, (seed, arm))
    elif side_by_side == "threads":
        failed = _in_threads(jobs, work, keep, recorder=(seed, arm), workers=workers, halt=halt)
    else:
        failed = _in_processes(jobs, work, keep, recorder=(seed, arm), workers=workers)
    places = {job: place for place, job in enumerate(jobs)}
    return sorted(failed, key=lambda one: places[one.job])


def attempted(recorder: Recorder, work: Work[T], job: Job) -> T | FailedJob:
    """Return what ``work`` gives, or why it gave nothing."""
    reason = ""
    for _ in range(TRIES):
        _ = recorder.browser  # one that does not start is no fault of the job
        try:
            return work(recorder, job)
        except Halted:
            raise
        except NotPlayed as failure:
            return FailedJob(job, one_line(str(failure)))
        except Exception as failure:  # reported with the job, while the others go on
            reason = one_line(f"{type(failure).__name__}: {failure}")
            recorder.renew()
    return FailedJob(job, reason)


def _in_turn(
    jobs: Sequence[Job], work: Work[T], keep: Keep[T], made: RecorderArguments
) -> list[FailedJob]:
    failed: list[FailedJob] = []
    with open_recorder(*made) as recorder:
        for job in jobs:
            _settle(job, attempted(recorder, work, job), keep, failed)
    return failed


def _settle(job: Job, outcome: T | FailedJob, keep: Keep[T], failed: list[FailedJob]) -> None:
    if isinstance(outcome, FailedJob):
        failed.append(outcome)
    else:
        keep(job, outcome)


def _in_threads(
    jobs: Sequence[Job],
    work: Work[T],
    keep: Keep[T],
    *,
    recorder: RecorderArguments,
    workers: int,
    halt: Callable[[], None],
) -> list[FailedJob]:
    failed: list[FailedJob] = []
    with ExitStack() as stack:
        idle: SimpleQueue[Recorder] = SimpleQueue()
        for _ in range(workers):
            idle.put(stack.enter_context(open_recorder(*recorder)))

        def once(job: Job) -> T | FailedJob:
            taken = idle.get()
            try:
                return attempted(taken, work, job)
            finally:
                idle.put(taken)

        with cancelled(ThreadPoolExecutor(workers), halt) as pool:
            for job, future in _ended({pool.submit(once, job): job for job in jobs}):
                _settle(job, future.result(), keep, failed)
    return failed


def _in_processes(
    jobs: Sequence[Job],
    work: Work[T],
    keep: Keep[T],
    *,
    recorder: RecorderArguments,
    workers: int,
) -> list[FailedJob]:
    """Do the jobs in processes. One that dies takes the others with it: what they had in hand is
    done once more."""
    failed: list[FailedJob] = []
    left = list(jobs)
    for _ in range(TRIES):
        left, begun = [], left
        pool: Executor = ProcessPoolExecutor(workers, get_context("spawn"), _begin, recorder)
        with cancelled(pool):
            for job, future in _ended({pool.submit(_here, work, job): job for job in begun}):
                try:
                    _settle(job, future.result(), keep, failed)
                except BrokenProcessPool:
                    left.append(job)
        if not left:
            return failed
    return [*failed, *(FailedJob(job, "a worker process ended of a sudden") for job in left)]


def _ended(futures: dict[Future[T], Job]) -> Iterator[tuple[Job, Future[T]]]:
    """Futures as they end, none kept longer: their results are large."""
    for future in as_completed(list(futures)):
        yield futures.pop(future), future


_HERE: Recorder | None = None  # the recorder of a worker process


def _begin(seed: int, arm: FaultArm | None = None) -> None:
    """Set a worker process up, with a recorder of its own, whose browser goes with it."""
    global _HERE  # noqa: PLW0603
    follow_parent()
    _HERE = Recorder(seed, arm)
    atexit.register(_HERE.close)


def _here(work: Work[T], job: Job) -> T | FailedJob:
    if _HERE is None:
        raise RuntimeError("the worker was not set up")
    return attempted(_HERE, work, job)
