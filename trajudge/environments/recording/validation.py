"""The last gate: the oracle's plan in real Chromium, at two viewports, with noise and without.

Offline a configuration may be sound and still not be solvable, because a control is covered or its
name is not what the tree says (WebForge section 3.5). A step that fails is tried three times; the
run has at most 50 actions. What fails is rejected with the step, its screenshot and its tree.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.recording.episode import Recorded, Viewport, play
from trajudge.environments.recording.recorder import Recorder
from trajudge.environments.serving.run import ServedRun
from trajudge.trajectories.model import Record

DESKTOP: Viewport = (1280, 720)
PHONE: Viewport = (390, 844)
NOISE = 1  # the index of the noise that is switched on
MOST_ACTIONS = 50
MUCH_LONGER = 3  # times the actions that were planned


class Check(NamedTuple):
    """One way to look at a configuration."""

    viewport: Viewport
    noise: int


CHECKS = (Check(DESKTOP, 0), Check(PHONE, NOISE))
ALL_CHECKS = (*CHECKS, Check(DESKTOP, NOISE), Check(PHONE, 0))


class Rejection(Record):
    """Reason for rejecting a configuration: in which check, at which step, and what was observed
    there."""

    reason: Literal["lost", "wrong", "side effect", "too long", "failed request", "error"]
    detail: str
    viewport: Viewport
    noise: int
    step: int
    axtree: str = ""
    screenshot: bytes = b""


def validate(recorder: Recorder, job: Job, checks: tuple[Check, ...] = CHECKS) -> Rejection | None:
    """None if the oracle solves the job's configuration in every check."""
    for check in checks:
        config = job.config.model_copy(update={"noise": check.noise})
        tried = job.model_copy(update={"config": config, "agent": ORACLE})
        oracles: list[Scripted] = []

        def make(run: ServedRun, oracles: list[Scripted] = oracles) -> Scripted:
            oracles.append(Scripted(run, ORACLE, 0, recorder.seed))
            return oracles[0]

        recorded = play(recorder.server, recorder.browser, tried, make, viewport=check.viewport)
        fault = _fault(recorded, oracles[0].stuck, job.shortest)
        if fault is not None:
            return _broken(fault, recorded, check)
    return None


class _Fault(NamedTuple):
    reason: Literal["lost", "wrong", "side effect", "too long", "failed request", "error"]
    detail: str


def _fault(recorded: Recorded, stuck: str, shortest: int) -> _Fault | None:
    labels, steps = recorded.finding.labels, len(recorded.trajectory.steps) - 1
    errors = [
        step.observation.page_error for step in recorded.trajectory.steps
        if step.observation.page_error
    ]  # fmt: skip
    if stuck:
        return _Fault("lost", stuck)
    if recorded.facts["faults"]:
        return _Fault("failed request", "; ".join(recorded.facts["faults"]))
    if labels.success is not True:
        return _Fault("wrong", errors[-1] if errors else "the oracle's run was not a success")
    if labels.side_effect is not False:
        return _Fault("side effect", "the oracle's run changed more than was asked for")
    if steps > min(MOST_ACTIONS, MUCH_LONGER * shortest + 3):
        return _Fault("too long", f"{steps} actions for a plan of {shortest}")
    return None


def _broken(fault: _Fault, recorded: Recorded, check: Check) -> Rejection:
    """Return the failed step: the last one with an error, else the last."""
    steps = recorded.trajectory.steps
    failed = [step for step in steps if step.observation.page_error]
    step = (failed or steps)[-1]
    picture = step.observation.screenshot
    return Rejection(
        **fault._asdict(),
        **check._asdict(),
        step=step.index,
        axtree=step.observation.axtree or "",
        screenshot=(picture.data if picture else None) or b"",
    )
