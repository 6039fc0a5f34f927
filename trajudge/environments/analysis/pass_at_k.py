"""Blind replay of kept recordings beside the pass@k of the agent that made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.replay import REPLAYER, ReplayAgent
from trajudge.environments.agents.script import AGENTS, Behaviour
from trajudge.environments.model.case import Case
from trajudge.environments.recording.recorder import Recorder
from trajudge.stats.suites import pass_at_k

# Of the scripted agents the one whose success is a matter of chance.
WANDERER = next(name for name, behaviour in AGENTS.items() if behaviour is Behaviour.LOOPS)


class Attempt(NamedTuple):
    """Whether an attempt was a success, and whether playing it back was one (not tried after a
    failure)."""

    case: str
    success: bool
    replayed: bool


def attempts(recorder: Recorder, case: Case, count: int) -> Iterator[Attempt]:
    """Yield the attempts at one case, each followed by its replay in the same run."""
    for number in range(count):
        job = Job(
            config=case.config,
            agent=WANDERER,
            attempt=number,
            goal=case.goal,
            shortest=case.shortest,
        )
        recorded = recorder.record(job)
        success = recorded.finding.labels.success is True
        actions = [step.action for step in recorded.trajectory.steps if step.action]
        yield Attempt(case.id, success, success and _again(recorder, job, actions))


def _again(recorder: Recorder, job: Job, actions: Sequence[str]) -> bool:
    """Tell whether the actions reach the same without looking."""
    name = f"{job.agent} {job.attempt}"
    blind = job.model_copy(update={"agent": REPLAYER})
    played = recorder.play_text(blind, lambda _: ReplayAgent(actions), name)
    return played.finding.labels.success is True


def summary(attempts: Sequence[Attempt], count: int) -> list[dict[str, float]]:
    """For every k up to ``count``: pass@k of the agent, and what the replay policy with k kept
    recordings reaches, both as the mean over cases of the unbiased estimate."""
    cases = sorted({attempt.case for attempt in attempts})
    done = [[a for a in attempts if a.case == case] for case in cases]
    rows = []
    for k in range(1, count + 1):
        reached = {
            name: float(np.mean(pass_at_k([sum(of) for of in counts], count, k)))
            for name, counts in (
                ("pass_at_k", [[a.success for a in tries] for tries in done]),
                ("replay", [[a.replayed for a in tries] for tries in done]),
            )
        }
        rows.append({"k": k, **reached})
    return rows
