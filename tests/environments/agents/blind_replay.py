"""Blind replay: what recorded actions come to when they are played back without looking.

A static environment gives such an agent its pass@k (Statistical Precipice, section 2.1 and appendix
9, arXiv 2605.08261); one that varies must not. Runs are the text engine's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from trajudge.environments.agents.protocol import GaveUp, Job
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.checks.variation import Axis, axis_neighbours
from trajudge.environments.chromium import AgentObservation
from trajudge.environments.model.case import Case
from trajudge.environments.recording.episode import Recorded, play_offline
from trajudge.environments.recording.recorder import actions_of

SECRET = b"the same in both"


class ReplayAgent:
    """Plays actions back without looking at the page; ends when none is left."""

    telemetry: Mapping[str, float] = MappingProxyType({})

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = iter(actions)

    def act(self, _: AgentObservation) -> tuple[str, str]:
        action = next(self._actions, None)
        if action is None:
            raise GaveUp
        return action, ""


def solution(case: Case) -> Recorded:
    """Play the reference solution of a case."""
    return play_offline(_job(case), lambda run: Scripted(run, ORACLE, 0, 0), SECRET)


def replayed(recorded: Recorded, case: Case, axes: Collection[Axis] = ()) -> bool | None:
    """Return whether the actions of the case's solution are a success again, on the same case or on
    the next in which each of ``axes`` is another; None where there is no such case."""
    other = next(axis_neighbours(case.config, axes), None) if axes else case
    if other is None:
        return None
    actions = actions_of(recorded)
    played = play_offline(_job(other), lambda _: ReplayAgent(actions), SECRET)
    return played.finding.labels.success is True


def _job(case: Case) -> Job:
    return Job(config=case.config, agent=ORACLE, goal=case.goal, shortest=case.shortest)
