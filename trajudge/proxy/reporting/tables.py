"""Tables of plans and exposures."""

from __future__ import annotations

from trajudge.proxy.plans.faults import Fault
from trajudge.proxy.plans.schedule import Schedule
from trajudge.util.tables import Table

# What stands in a table's row beside the fields that have columns of their own.
_SHOWN_APART = {"id", "kind", "policy"}


def schedule_table(schedule: Schedule) -> Table:
    """Show when each fault of a plan fires in a task."""
    rows = [
        (fault.id, fault.kind, _details(fault), str(fault.policy), _ordinals(schedule, fault))
        for fault in schedule.plan.faults
    ]
    title = f"Faults of task {schedule.task!r} (seed {schedule.seed})"
    return Table(title, ("fault", "kind", "details", "policy", "page loads"), rows, 5)


def _details(fault: Fault) -> str:
    fields = fault.model_dump(exclude=_SHOWN_APART, exclude_none=True)
    return ", ".join(f"{name} {_text(value)}" for name, value in fields.items())


def _text(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _ordinals(schedule: Schedule, fault: Fault) -> str:
    ordinals = schedule.planned(fault)
    return "drawn at each" if ordinals is None else ", ".join(map(str, ordinals))
