"""What speaks against comparing a run, and how much."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from trajudge.trajectories.model import Record

Gravity = Literal["error", "warning", "note"]
GRAVITIES: tuple[Gravity, ...] = ("error", "warning", "note")


class RunFinding(Record):
    """One finding: ``name`` is the same for every run, ``text`` says what was found and what mends
    it. An ``error`` forbids to compare the run; a ``warning`` weakens its figures; a ``note`` is
    worth knowing."""

    severity: Gravity
    name: str
    text: str


def worst_first(findings: Iterable[RunFinding]) -> tuple[RunFinding, ...]:
    """Sort by severity; findings of one severity keep their order."""
    return tuple(sorted(findings, key=lambda each: GRAVITIES.index(each.severity)))


def error(name: str, text: str) -> RunFinding:
    return RunFinding(severity="error", name=name, text=text)


def warning(name: str, text: str) -> RunFinding:
    return RunFinding(severity="warning", name=name, text=text)


def note(name: str, text: str) -> RunFinding:
    return RunFinding(severity="note", name=name, text=text)
