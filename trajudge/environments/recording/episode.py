"""One run of one agent on one configuration: the trajectory, its labels, and what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trajudge.environments.agents.protocol import Agent, GaveUp, Job
from trajudge.environments.chromium import open_session
from trajudge.environments.chromium.action_syntax import spoken
from trajudge.environments.model.config import THEMES
from trajudge.environments.model.variant import RunVariant
from trajudge.environments.recheck import content_digest
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.text import TextSession
from trajudge.environments.verify import (
    ExecutedAction,
    RunEvidence,
    VerificationResult,
    Viewpoint,
    expected,
    verify,
)
from trajudge.prompts.render import sendable
from trajudge.trajectories.model import Step, Trajectory

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation, Browser, Session
    from trajudge.environments.recording.fault_proxy import FaultProxy
    from trajudge.environments.serving.server import Server


Viewport = tuple[int, int]
VIEWPORT: Viewport = (1024, 768)
OTHER_VIEWPORT: Viewport = (1366, 1024)


class Recorded(NamedTuple):
    """A recorded run. ``facts`` says what the labels rest on, ``har`` is the network trace,
    ``events`` what the proxy noted, if the run went through one."""

    trajectory: Trajectory
    finding: VerificationResult
    facts: Mapping[str, Any]
    har: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]] = ()


class OpenPage(Protocol):
    """An open page of a run: what a recording asks of it."""

    def observe(self, error: str | None = None) -> AgentObservation: ...

    def act(self, text: str) -> str | None: ...

    def har(self) -> dict[str, Any]: ...


def play(
    server: Server,
    browser: Browser,
    job: Job,
    make: Callable[[ServedRun], Agent],
    *,
    name: str = "",
    viewport: Viewport = VIEWPORT,
    pictures: bool = True,
    proxy: FaultProxy | None = None,
) -> Recorded:
    """Let an agent do a job in a fresh run and a fresh browser context. ``name`` names the run
    (its codes differ from those of another name); by default the agent and the attempt. Without
    ``pictures`` only text is seen and recorded. The run is a task of the ``proxy``, if the browser
    is behind one."""

    def visit(url: str) -> AbstractContextManager[Session]:
        return open_session(browser, url, viewport=viewport, pictures=pictures)

    if proxy is None:
        return play_in(visit, server, job, make, name=name)
    proxy.begin(job)
    recorded = play_in(visit, server, job, make, name=name)
    ended = proxy.end()
    facts = {**recorded.facts, "injected": {**proxy.arm.record, "exposure": ended.exposure}}
    return recorded._replace(facts=facts, events=ended.events)


def play_in(
    visit: Callable[[str], AbstractContextManager[OpenPage]],
    server: Server,
    job: Job,
    make: Callable[[ServedRun], Agent],
    *,
    name: str = "",
) -> Recorded:
    """Let an agent do a job in a fresh run, in what ``visit`` opens at the run's first address."""
    run = server.open(job.config, name or f"{job.agent} {job.attempt}", job.goal, job.payload)
    _dress(run, job)
    try:
        with visit(run.start_url) as session:
            return _played(session, run, make(run), job)
    finally:
        server.close(run)


def viewport_of(job: Job) -> Viewport:
    """Return the window in which a job is recorded: another one for another theme."""
    return OTHER_VIEWPORT if job.variant is RunVariant.THEME else VIEWPORT


def _dress(run: ServedRun, job: Job) -> None:
    """Show the pages of a run in another theme, if that is the variant."""
    if job.variant is RunVariant.THEME:
        run.dress((job.config.theme + THEMES // 2) % THEMES)


def play_offline(job: Job, make: Callable[[ServedRun], Agent], secret: bytes) -> Recorded:
    """Let an agent do a job in a fresh run without a browser (see ``environments.text``).
    ``secret`` keys the run's codes."""
    run = open_run(job.config, secret, f"{job.agent} {job.attempt}", job.goal, job.payload)
    _dress(run, job)
    try:
        return _played(TextSession(run), run, make(run), job)
    finally:
        run.state.close()


class Episode:
    """A run on an open page, one action after another, until the agent has spoken, or submitted its
    answer on the page for it (``answer``), or its budget (by default the job's) is spent. ``view``
    is what it sees now, ``failure`` what the agent's own code failed with."""

    def __init__(self, page: OpenPage, run: ServedRun, job: Job, budget: int | None = None) -> None:
        self.job, self.run = job, run
        self.budget = budget or job.budget
        self.answer: str | None = None
        self.failure = ""
        self.view = page.observe()
        self._page = page
        self._viewpoint = Viewpoint()
        self._steps: list[Step] = []
        self.actions: list[ExecutedAction] = []

    @property
    def steps(self) -> int:
        """How many actions were done."""
        return len(self._steps)

    @property
    def is_over(self) -> bool:
        return self.answer is not None or len(self._steps) >= self.budget

    def act(self, text: str, thought: str | None) -> None:
        """Do the agent's next action and observe what it leads to."""
        # What no JSON takes (half a surrogate pair) is no part of a record.
        text, thought = sendable(text), thought and sendable(thought)
        seen, before = self.view, self.run.state.version
        step = Step(
            index=len(self._steps), observation=seen.observation, reasoning=thought, action=text
        )
        self._steps.append(step)
        view = self._viewpoint.act(seen.observation, text)
        error = self._page.act(text)
        self.actions.append(ExecutedAction(view, text, before, self.run.state.version))
        self.view = self._page.observe(error)
        message = spoken(text)
        self.answer = self.run.declared if message is None else message

    def end(self, telemetry: Mapping[str, float]) -> tuple[Trajectory, VerificationResult]:
        """Return what was done, of which the last step only observes, and what it comes to."""
        evidence = self.run.evidence(self.answer, self.actions, self.job.fewest or 0)
        last = Step(index=len(self._steps), observation=self.view.observation)
        made = run_trajectory(self.job, evidence, [*self._steps, last], telemetry)
        return made, verify(evidence)


def _played(page: OpenPage, run: ServedRun, agent: Agent, job: Job) -> Recorded:
    episode = Episode(page, run, job)
    try:
        while not episode.is_over:
            episode.act(*agent.act(episode.view))
    except GaveUp as gave_up:
        episode.failure = str(gave_up)
    trajectory, finding = episode.end(agent.telemetry)
    facts = run_facts(run, finding)
    if episode.failure:
        facts["agent_failure"] = episode.failure
    return Recorded(trajectory, finding, facts, page.har())


def run_trajectory(
    job: Job, evidence: RunEvidence, steps: Sequence[Step], telemetry: Mapping[str, float]
) -> Trajectory:
    """Return the record of a run, of which the last step only observes."""
    answer = evidence.answer
    errors = sum(step.observation.page_error is not None for step in steps)
    return Trajectory(
        key=job.key,
        raw_task_id=job.config.id,
        goal=evidence.goal,
        steps=tuple(steps),
        answer=answer,
        official_reward=official_reward(evidence),
        terminated=answer is not None,
        truncated=answer is None,
        telemetry={"n_steps": float(len(steps) - 1), "n_errors": float(errors), **telemetry},
    )


def official_reward(evidence: RunEvidence) -> float:
    """Return the applications' own rule-based evaluator, as crude as real ones are: it compares the
    last message word for word where the task asks a question, else it looks whether anything was
    added to, removed from or changed in the tables of the task."""
    if evidence.scenario.answers:
        right = expected(evidence)
        return float(bool(right) and (evidence.answer or "").strip() == ", ".join(right))
    changed = {(change.kind, change.table) for change in evidence.changes}
    return float(all((wish.kind, wish.table) in changed for wish in evidence.scenario.expect))


def run_facts(run: ServedRun, finding: VerificationResult) -> dict[str, Any]:
    """Return what the labels of a run rest on, and what it takes to verify it again."""
    return {
        "app": run.app.id,
        "domain": run.app.domain,
        "scenario": run.scenario.id,
        "config": run.config.model_dump(),
        "content": content_digest(run.config),  # what the application held, to verify it again
        "code_key": run.key.hex(),  # of the run's operation codes, to verify it again
        "noise": [item._asdict() for item in run.noise],
        "tampering": [event.detail for event in run.events if event.kind == "tamper"],
        "faults": [event.path for event in run.events if event.kind in ("fault", "missing")],
        **finding.facts,
        **({"payload": run.payload.model_dump()} if run.payload else {}),
    }
