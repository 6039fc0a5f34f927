"""A browser and a server that play one job after another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from secrets import token_bytes
from typing import TYPE_CHECKING

from trajudge.environments.agents.ladder import RUNGS, LadderAgent
from trajudge.environments.agents.protocol import Agent, Job, NotPlayed
from trajudge.environments.agents.resilient import Resilient
from trajudge.environments.agents.script import AGENTS, LADDER, ORACLE, RESILIENT, Behaviour
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.apps import mistakes_of
from trajudge.environments.checks.variation import changed_case
from trajudge.environments.chromium import launch
from trajudge.environments.model.axes import generator
from trajudge.environments.recording.episode import Recorded, play, play_offline, viewport_of
from trajudge.environments.recording.fault_proxy import FaultArm, FaultProxy, open_proxy
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.serving.server import Server, serve
from trajudge.environments.variants.endings import ending
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.environments.chromium import Browser


def run_name(job: Job) -> str:
    """Return a file name for the run of a job; a model's name may hold more than file names do."""
    agent = re.sub(r"[^\w.-]", "-", job.agent)
    variant = "" if job.variant is None else f".{job.variant}"
    return f"{job.config.id}.{agent}.{job.attempt}{variant}"


class Recorder:
    """Plays jobs one after another in one browser, which starts with the first. The operation codes
    are keyed by a secret that is drawn here: no seed gives them away. With an ``arm`` the browser
    is behind a proxy that carries out its faults. Without ``pictures`` only text is recorded."""

    pictures = True

    def __init__(self, seed: int, arm: FaultArm | None = None) -> None:
        self.seed = seed
        self._outer = ExitStack()
        self.server: Server = self._outer.enter_context(serve())
        self.proxy: FaultProxy | None = None
        if arm is not None:
            self.pictures = arm.pictures
            self.proxy = self._outer.enter_context(open_proxy(arm, self.server.port, seed))
        self._inner = ExitStack()
        self._browser: Browser | None = None

    @property
    def browser(self) -> Browser:
        """The browser that is open. Raises what ``launch`` raises."""
        if self._browser is None:
            address = self.proxy.address if self.proxy else ""
            self._browser = self._inner.enter_context(launch(self.server.port, address))
        return self._browser

    def renew(self) -> None:
        """Have a fresh browser for the next job."""
        self._browser = None
        self._inner.close()

    def record(self, job: Job) -> Recorded:
        """Play a scripted agent's job; one that gets lost still gives a run."""
        replays = AGENTS.get(job.agent) is Behaviour.REPLAYS
        actions = self._elsewhere(job) if replays else ()

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

    def play_text(self, job: Job, make: Callable[[ServedRun], Agent], name: str = "") -> Recorded:
        """Let an agent do a job without faults, and record text alone; ``name`` as in
        ``episode.play``. Raises as ``play``."""
        return self._play(job, make, name=name, pictures=False)

    def _play(
        self,
        job: Job,
        make: Callable[[ServedRun], Agent],
        *,
        name: str = "",
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

        recorded = play(
            self.server,
            self.browser,
            job,
            agent,
            name=name,
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

    def _elsewhere(self, job: Job) -> Sequence[str]:
        """Return what the oracle did where every axis is another. Raises NotPlayed."""
        return self.oracles_actions(changed_job(job))

    def oracles_actions(self, job: Job, name: str = "") -> Sequence[str]:
        """Return the oracle's actions on a configuration; ``name`` as in ``play_text``, which
        raises the same."""
        return actions_of(
            self.play_text(job, lambda run: Scripted(run, ORACLE, 0, self.seed), name)
        )


def raise_mistake(run: ServedRun) -> None:
    """Raise what the application raised in the run, UserError if it is a user's."""
    if run.mistake is not None:
        with mistakes_of(run.app.id, f"{run.config.id} cannot be played"):
            raise run.mistake


def recorded_offline(job: Job, seed: int) -> Recorded:
    """Play a scripted agent's job without a browser. Raises NotPlayed."""
    secret = token_bytes(32)
    actions: Sequence[str] = ()
    if AGENTS[job.agent] is Behaviour.REPLAYS:
        oracle = play_offline(changed_job(job), lambda run: Scripted(run, ORACLE, 0, seed), secret)
        actions = actions_of(oracle)
    return play_offline(job, lambda run: scripted(run, job, seed, actions), secret)


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
def open_recorder(seed: int, arm: FaultArm | None = None) -> Iterator[Recorder]:
    """Open a recorder in this process."""
    made = Recorder(seed, arm)
    try:
        yield made
    finally:
        made.close()
