"""Short ways to write a perturbation down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trajudge.robustness.model import (
    STEP_CHANNELS,
    Attacker,
    Channel,
    Need,
    NotApplicable,
    Perturbation,
    Sibling,
    Subject,
    Transform,
    keeps,
)
from trajudge.trajectories.model import Trajectory

FAILED = frozenset({Need.TRUTH_FALSE})
SUCCEEDED = frozenset({Need.TRUTH_TRUE})
STATED = frozenset({Need.FACTS})
# What of a trajectory is the run itself, and not the task.
_RUN = ("steps", "answer", "official_reward", "terminated", "truncated", "telemetry")
WHOLE_RUN = STEP_CHANNELS | {Channel.ANSWER, Channel.METADATA}
SPOKEN = frozenset({Channel.ANSWER, Channel.ACTION})
THOUGHT = frozenset({Channel.REASONING})


def invariance(
    name: str,
    summary: str,
    channels: Iterable[Channel],
    change: Callable[[Trajectory], Trajectory | NotApplicable],
    needs: Iterable[Need] = (),
    **others: Any,
) -> Perturbation:
    """Return a perturbation of family A."""
    return Perturbation(
        name=name,
        family="A",
        channels=frozenset(channels),
        relations=keeps(),
        needs=frozenset(needs),
        summary=summary,
        change=lambda subject, _: change(subject.trajectory),
        **others,
    )


def claim(
    name: str, summary: str, channels: Iterable[Channel], change: Transform, **others: Any
) -> Perturbation:
    """Return a perturbation of family C: what the agent says of a run that failed."""
    needs = FAILED | frozenset(others.pop("needs", ()))
    return Perturbation(
        name=name,
        family="C",
        channels=frozenset(channels),
        relations=keeps(),
        attacker=Attacker.AGENT,
        summary=summary,
        **{"needs": needs, **others},
        change=change,
    )


def each(change: Callable[[Trajectory], Trajectory]) -> Transform:
    """Return what changes a trajectory whatever is known of it."""
    return lambda subject, _: change(subject.trajectory)


def inapplicable(reason: str) -> NotApplicable:
    """Say why a perturbation has nothing to say."""
    return NotApplicable(reason=reason)


def siblings_with(subject: Subject, success: bool) -> list[Trajectory]:
    """List the runs of the same case with this outcome."""
    return [one.trajectory for one in subject.facts.siblings if one.success is success]


def shown_instead(source: Trajectory, other: Sibling) -> Trajectory:
    """Put another run in the place of the source; task and key stay the source's."""
    return source.model_copy(update={name: getattr(other.trajectory, name) for name in _RUN})
