"""Findings of the linter: a weakness of a task's specification, its place, and its fix."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.output import brief, first, text_of, write_csv, write_json
from trajudge.rules.reading import TaskFlaw
from trajudge.util.tables import columns, folded, screen_width

_COLUMNS = ("severity", "task_id", "category", "field", "value", "problem", "mend")


class Severity(StrEnum):
    """What a weakness does to verdicts, the worst first.

    ``error``: no honest run passes, or one that did nothing does. ``warning``: some wrong runs
    pass, or the released package refuses honest ones. ``note``: worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


Severities = Mapping[str, Severity]
"""The severity of each category, in the order of the report."""


class Finding(msgspec.Struct, frozen=True):
    """One weakness. ``field`` is its place in the task, such as ``eval.program_html[0].locator``.

    ``value`` is what stands there; ``problem`` and ``mend`` are one sentence each.
    """

    task_id: int | str
    category: str
    field: str
    value: Any
    problem: str
    mend: str


def unreadable_finding(task_id: int | str, flaw: TaskFlaw) -> Finding:
    """Return the finding on a task that cannot be read."""
    problem = f"No run of the task is judged, for it cannot be read: {flaw.problem}."
    return Finding(
        task_id, "unreadable", flaw.field, flaw.value, problem, "Write what schema.md says of it."
    )


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """A category and the tasks that it has findings in; a union names its categories, and has the
    worst severity of them."""

    category: str
    severity: Severity
    tasks: tuple[int | str, ...]
    findings: int
    union_of: tuple[str, ...] = ()


def counts(
    findings: Iterable[Finding],
    severities: Severities,
    unions: Mapping[str, tuple[str, ...]],
) -> tuple[Count, ...]:
    """Return one count for each category, also for those without findings, then one for each union.

    A task counts once however many findings it has.
    """
    listed = list(findings)
    made = [_count(listed, name, (name,), (), severities) for name in severities]
    made += [_count(listed, name, parts, parts, severities) for name, parts in unions.items()]
    return tuple(made)


def _count(
    findings: list[Finding],
    name: str,
    parts: tuple[str, ...],
    union_of: tuple[str, ...],
    severities: Severities,
) -> Count:
    found = [finding for finding in findings if finding.category in parts]
    tasks = tuple(dict.fromkeys(finding.task_id for finding in found))
    worst = min((severities[part] for part in parts), key=lambda one: one.rank)
    return Count(category=name, severity=worst, tasks=tasks, findings=len(found), union_of=union_of)


def show_findings(
    title: str, counted: Sequence[Count], found: Sequence[Finding], limit: int
) -> None:
    """Print how many findings there are, by severity and category, and ``limit`` of them: the most
    severe, of these the rarest, first."""
    width, tasks = screen_width(), {finding.task_id for finding in found}
    known = {count.category: count for count in counted}
    tallied = Counter(known[finding.category].severity for finding in found)
    parts = ", ".join(f"{one.value}s {tallied[one]:,}" for one in Severity if tallied[one])
    text = f"{title}; {len(found):,} findings in {len(tasks):,} tasks"
    lines = folded(f"{text}: {parts}" if parts else text, width)
    rows = [
        (
            "" if count.union_of else count.severity.value,
            _label(count),
            first(count.tasks, 3),
            str(len(count.tasks)),
            str(count.findings),
        )
        for count in sorted(counted, key=lambda one: (bool(one.union_of), one.severity.rank))
        if count.findings
    ]
    if rows:
        head = ("severity", "category", "which", "tasks", "findings")
        lines += ["", *columns(head, rows, width, names=3)]
    if none := [count.category for count in counted if not count.findings]:
        lines += folded(f"without findings: {', '.join(none)}", width)
    worst = sorted(found, key=lambda one: _order(known[one.category]))[: max(limit, 0)]
    if worst:
        shown = f"{len(worst)} of {len(found):,} findings, the most severe, then the rarest, first"
        lines += ["", *folded(f"{shown} (--show N, --min-severity, --out DIR)", width)]
    for f in worst:
        text = f"{known[f.category].severity.value}: task {f.task_id}, {f.category}, {f.field}: "
        told = f"{_sentence(f.problem)} {_sentence(f.mend)}"
        lines += folded(f"{text}{brief(f.value)}: {told}", width, most=3)
    sys.stdout.write("\n".join(lines) + "\n")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _order(count: Count) -> tuple[int, int]:
    return count.severity.rank, count.findings


def _label(count: Count) -> str:
    return f"{count.category} = {' or '.join(count.union_of)}" if count.union_of else count.category


def write_findings(
    out: Path, dialect: str, counted: Sequence[Count], found: Sequence[Finding]
) -> None:
    """Write ``lint.json`` and ``lint.csv``, in the order of the tasks. Raises UserError."""
    severity = {count.category: count.severity.value for count in counted}
    listed = [{"severity": severity[one.category], **msgspec.structs.asdict(one)} for one in found]
    write_json(out / "lint.json", {"dialect": dialect, "counts": counted, "findings": listed})
    rows = (
        [text_of(one[name]) if name == "value" else one[name] for name in _COLUMNS]
        for one in listed
    )
    write_csv(out / "lint.csv", _COLUMNS, rows)
