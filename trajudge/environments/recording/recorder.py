"""A browser and a server that play one job after another, and many of them that share the jobs: in
several processes, or in several threads. What a job gives does not depend on which of these it is.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import cached_property
from hashlib import sha256
from multiprocessing import get_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from trajudge.environments.agents.ladder import RUNGS, LadderAgent
from trajudge.environments.agents.protocol import Agent, Halted, Job, NotPlayed
from trajudge.environments.agents.resilient import Resilient
from trajudge.environments.agents.script import AGENTS, LADDER, ORACLE, RESILIENT, Behaviour
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.apps import mistakes_of
from trajudge.environments.checks.variation import changed_case
from trajudge.environments.chromium import launch
from trajudge.environments.model.axes import generator
from trajudge.environments.model.config import Engine
from trajudge.environments.recording.episode import Recorded, play, play_offline, viewport_of
from trajudge.environments.recording.fault_proxy import FaultArm, FaultProxy, open_proxy
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.serving.server import Server, serve
from trajudge.environments.variants import ending
from trajudge.util.errors import UserError
from trajudge.util.machine import cancelled, follow_parent
from trajudge.util.terminal import one_line

if TYPE_CHECKING:
    from trajudge.environments.chromium import Browser


def run_name(job: Job) -> str:
    """Return a file name for the run of a job; a model's name may hold more than file names do."""
    agent = re.sub(r"[^\w.-]", "-", job.agent)
    variant = "" if job.variant is None else f".{job.variant}"
    return f"{job.config.id}.{agent}.{job.attempt}{variant}"


class Recorder:
    """Plays jobs one after another, in one browser, which starts with the first, or by the
    ``engine`` "text" without one. ``secret`` keys the operation codes; by default it follows from
    the seed, so that a recording can be made again. With an ``arm`` the browser is behind a proxy
    that carries out its faults. Without ``pictures`` only text is recorded."""

    pictures = True

    def __init__(
        self,
        seed: int,
        arm: FaultArm | None = None,
        engine: Engine = "chromium",
        secret: bytes = b"",
    ) -> None:
        self.seed = seed
        self.engine: Engine = engine
        self.secret = secret or sha256(f"recording {seed}".encode()).digest()
        self._outer = ExitStack()
        self.proxy: FaultProxy | None = None
        if arm is not None:
            self.pictures = arm.pictures
            self.proxy = self._outer.enter_context(open_proxy(arm, self.server.port, seed))
        self._inner = ExitStack()
        self._browser: Browser | None = None

    @cached_property
    def server(self) -> Server:
        """The server of the browser's pages, which starts when it is first asked for."""
        return self._outer.enter_context(serve(self.secret))

    @property
    def browser(self) -> Browser:
        """The browser that is open. Raises what ``launch`` raises."""
        if self._browser is not None and self.pictures > self._browser.pictures:
            self.renew()
        if self._browser is None:
            address = self.proxy.address if self.proxy else ""
            launched = launch(self.server.port, address, pictures=self.pictures)
            self._browser = self._inner.enter_context(launched)
        return self._browser

    def start(self) -> None:
        """Open the browser, if the engine is one. Raises what ``launch`` raises."""
        if self.engine == "chromium":
            _ = self.browser

    def renew(self) -> None:
        """Have a fresh browser for the next job."""
        self._browser = None
        self._inner.close()

    def record(self, job: Job) -> Recorded:
        """Play a scripted agent's job; one that gets lost still gives a run."""
        replays = AGENTS.get(job.agent) is Behaviour.REPLAYS
        actions = self.oracles_actions(changed_job(job)) if replays else ()

        def agent(run: ServedRun) -> Agent:
            if job.agent in RESILIENT:
                return Resilient(run, job.agent, job.attempt, self.seed)
            if job.agent in LADDER:
                rng = generator("ladder", job.agent, job.config.id, job.attempt, self.seed)
                return LadderAgent(run.goal, RUNGS[LADDER[job.agent]], rng)
            return scripted(run, job, self.seed, actions)

        return self.play(job, agent)

    def play(self, job: Job, make: Callable[[ServedRun], Agent]) -> Recorded:
        """Let an agent do a job, behind the proxy if there is one.

        Raises what the application raised in the run, NotPlayed if it is a user's: where its code
        fails, nothing can be said of the agent.
        """
        return self._play(job, make, pictures=self.pictures, proxy=self.proxy)

    def play_text(self, job: Job, make: Callable[[ServedRun], Agent]) -> Recorded:
        """Let an agent do a job without faults, and record text alone. Raises as ``play``."""
        return self._play(job, make, pictures=False)

    def _play(
        self,
        job: Job,
        make: Callable[[ServedRun], Agent],
        *,
        pictures: bool,
        proxy: FaultProxy | None = None,
    ) -> Recorded:
        served: list[ServedRun] = []

        def agent(run: ServedRun) -> Agent:
            served.append(run)
            try:  # a scripted agent looks ahead through the application's own code
                with mistakes_of(run.app.id, f"{run.config.id} cannot be played"):
                    return make(run)
            except UserError as mistake:
                raise NotPlayed(str(mistake)) from mistake

        if self.engine == "text":
            recorded = play_offline(job, agent, self.secret)
        else:
            recorded = play(
                self.server,
                self.browser,
                job,
                agent,
                viewport=viewport_of(job),
                pictures=pictures,
                proxy=proxy,
            )
        try:
            for run in served:
                raise_mistake(run)
        except UserError as mistake:
            raise NotPlayed(str(mistake)) from mistake
        return recorded

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._outer.close()

    def oracles_actions(self, job: Job) -> Sequence[str]:
        """Return the oracle's actions on a configuration. Raises as ``play``."""
        return actions_of(self.play_text(job, lambda run: Scripted(run, ORACLE, 0, self.seed)))


def raise_mistake(run: ServedRun) -> None:
    """Raise what the application raised in the run, UserError if it is a user's."""
    if run.mistake is not None:
        with mistakes_of(run.app.id, f"{run.config.id} cannot be played"):
            raise run.mistake


def recorded_offline(job: Job, seed: int) -> Recorded:
    """Play a scripted agent's job without a browser. Raises NotPlayed."""
    with open_recorder(seed, engine="text") as recorder:
        return recorder.record(job)


def scripted(run: ServedRun, job: Job, seed: int, recorded: Sequence[str] = ()) -> Scripted:
    """Return the scripted agent of a job, which ends its run as the variant says. Raises
    NotPlayed."""
    last = (ending(run, job.variant) if job.variant else None) or ()
    return Scripted(run, job.agent, job.attempt, seed, recorded, ending=last)


def changed_job(job: Job) -> Job:
    """Return the oracle's job where every axis is another. Raises NotPlayed."""
    other = changed_case(job.config)
    if other is None:
        raise NotPlayed("the task comes to the same wherever it can be done")
    return Job(config=other.config, agent=ORACLE, goal=other.goal, shortest=other.shortest)


def actions_of(recorded: Recorded) -> list[str]:
    """Return the actions of a run, in their order."""
    return [step.action for step in recorded.trajectory.steps if step.action]


@contextmanager
def open_recorder(
    seed: int, arm: FaultArm | None = None, engine: Engine = "chromium"
) -> Iterator[Recorder]:
    """Open a recorder in this process."""
    made = Recorder(seed, arm, engine)
    try:
        yield made
    finally:
        made.close()


# --- many jobs ---

T = TypeVar("T")
TRIES = 2  # of a job that fails for no known reason, the second in a fresh browser
Work = Callable[[Recorder, Job], T]
Keep = Callable[[Job, T], None]
RecorderArguments = tuple[int, FaultArm | None, Engine]  # a seed, the faults that runs meet


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
    workers: int,
    arm: FaultArm | None = None,
    engine: Engine = "chromium",
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
    recorder = (seed, arm, engine)
    if workers == 1 or len(jobs) < 2:
        failed = _in_turn(jobs, work, keep, recorder)
    elif side_by_side == "threads":
        failed = _in_threads(jobs, work, keep, recorder=recorder, workers=workers, halt=halt)
    else:
        failed = _in_processes(jobs, work, keep, recorder=recorder, workers=workers)
    places = {job: place for place, job in enumerate(jobs)}
    return sorted(failed, key=lambda one: places[one.job])


def attempted(recorder: Recorder, work: Work[T], job: Job) -> T | FailedJob:
    """Return what ``work`` gives, or why it gave nothing."""
    reason = ""
    for _ in range(TRIES):
        recorder.start()  # a browser that does not start is no fault of the job
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


def _begin(seed: int, arm: FaultArm | None, engine: Engine) -> None:
    """Set a worker process up, with a recorder of its own, whose browser goes with it."""
    global _HERE  # noqa: PLW0603
    follow_parent()
    _HERE = Recorder(seed, arm, engine)
    atexit.register(_HERE.close)


def _here(work: Work[T], job: Job) -> T | FailedJob:
    if _HERE is None:
        raise RuntimeError("the worker was not set up")
    return attempted(_HERE, work, job)
