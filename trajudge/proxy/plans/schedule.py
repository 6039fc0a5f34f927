"""What a plan does in one task, and how much of it the task was exposed to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from trajudge.proxy.plans.faults import Fault
from trajudge.proxy.plans.plan import FaultPlan
from trajudge.proxy.plans.policies import DrawKey, draw, planned_ordinals

FaultOutcome = Literal["fired", "masked", "impossible"]
"""``masked``: an earlier fault of the plan replaced the answer. ``impossible``: the answer left no
room for it (a picture has no popup); the event says why."""


class Exposure(NamedTuple):
    """How often a fault was planned in a task, and what came of it. ``planned`` are the ordinals of
    a policy that has an end, else of the page loads that the task reached."""

    fault: str
    kind: str
    planned: tuple[int, ...]
    fired: tuple[int, ...]
    masked: tuple[int, ...]
    impossible: tuple[int, ...]
    unreached: tuple[int, ...]

    @property
    def open(self) -> tuple[int, ...]:
        """Ordinals that were reached without an outcome: a load that ended before its fault."""
        closed = {*self.fired, *self.masked, *self.impossible, *self.unreached}
        return tuple(k for k in self.planned if k not in closed)


@dataclass(frozen=True)
class Schedule:
    """The faults of a plan in one task: a function of plan, seed, task and ``horizon`` alone, the
    number of page loads that the task takes (for ``random(n)``)."""

    plan: FaultPlan
    task: str
    seed: int
    horizon: int | None = None
    _ordinals: dict[str, frozenset[int] | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        planned = {fault.id: self.planned(fault) for fault in self.plan.faults}
        frozen = {name: None if ks is None else frozenset(ks) for name, ks in planned.items()}
        object.__setattr__(self, "_ordinals", frozen)

    def planned(self, fault: Fault) -> tuple[int, ...] | None:
        """Return the ordinals at which a fault fires; None where the policy has no end."""
        return planned_ordinals(fault.policy, self._key(fault), self.horizon)

    def due(self, ordinal: int) -> tuple[Fault, ...]:
        """Return the faults of a page load (from 1), in the plan's order."""
        return tuple(fault for fault in self.plan.faults if self.is_due(fault, ordinal))

    def is_due(self, fault: Fault, ordinal: int) -> bool:
        """Tell whether a fault is planned at a page load."""
        ordinals = self._ordinals[fault.id]
        if ordinals is None:
            return draw(self._key(fault), ordinal) < (fault.policy.bernoulli or 0.0)
        return ordinal in ordinals

    def _key(self, fault: Fault) -> DrawKey:
        return DrawKey(self.seed, self.task, fault.id)


def exposures(
    schedule: Schedule, loads: int, outcomes: Iterable[tuple[str, int, FaultOutcome]]
) -> tuple[Exposure, ...]:
    """Return what a task of ``loads`` page loads met, from (fault, ordinal, outcome)."""
    by_outcome: dict[tuple[str, str], set[int]] = {}
    for name, ordinal, outcome in outcomes:
        by_outcome.setdefault((name, outcome), set()).add(ordinal)

    def ordinals(fault: Fault, outcome: FaultOutcome) -> tuple[int, ...]:
        return tuple(sorted(by_outcome.get((fault.id, outcome), ())))

    exposed = []
    for fault in schedule.plan.faults:
        planned = schedule.planned(fault)
        if planned is None:
            planned = tuple(k for k in range(1, loads + 1) if schedule.is_due(fault, k))
        exposed.append(
            Exposure(
                fault.id,
                fault.kind,
                planned,
                ordinals(fault, "fired"),
                ordinals(fault, "masked"),
                ordinals(fault, "impossible"),
                tuple(k for k in planned if k > loads),
            )
        )
    return tuple(exposed)
