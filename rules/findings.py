"""Findings of the linter: a weakness of a task's specification, its place, and its fix."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.output import brief, first, text_of, write_csv, write_json
from trajudge.trajectories.util.tables import columns, folded, screen_width

_COLUMNS = ("task_id", "category", "field", "value", "problem", "mend")


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


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """A category and the tasks that it has findings in; a union of categories names them."""

    category: str
    tasks: tuple[int | str, ...]
    findings: int
    union_of: tuple[str, ...] = ()


def counts(
    findings: Iterable[Finding],
    categories: Iterable[str],
    unions: Mapping[str, tuple[str, ...]],
) -> tuple[Count, ...]:
    """Return one count for each category, also for those without findings, then one for each union.

    A task counts once however many findings it has.
    """
    listed = list(findings)
    made = [_count(listed, name, (name,), ()) for name in categories]
    made += [_count(listed, name, parts, parts) for name, parts in unions.items()]
    return tuple(made)


def _count(
    findings: list[Finding], name: str, parts: tuple[str, ...], union_of: tuple[str, ...]
) -> Count:
    found = [finding for finding in findings if finding.category in parts]
    tasks = tuple(dict.fromkeys(finding.task_id for finding in found))
    return Count(category=name, tasks=tasks, findings=len(found), union_of=union_of)


def show_findings(
    title: str, counted: Sequence[Count], found: Sequence[Finding], limit: int
) -> None:
    """Print how many findings there are, of which categories, and the ``limit`` rarest of them."""
    width, tasks = screen_width(), {finding.task_id for finding in found}
    lines = folded(f"{title}; {len(found):,} findings in {len(tasks):,} tasks", width)
    rows = [
        (_label(count), first(count.tasks, 3), str(len(count.tasks)), str(count.findings))
        for count in counted
        if count.findings
    ]
    if rows:
        lines += ["", *columns(("category", "which", "tasks", "findings"), rows, width, names=2)]
    if none := [count.category for count in counted if not count.findings]:
        lines += folded(f"without findings: {', '.join(none)}", width)
    size = {count.category: count.findings for count in counted}
    rarest = sorted(found, key=lambda finding: size[finding.category])[: max(limit, 0)]
    if rarest:
        lines += [
            "",
            f"{len(rarest)} of {len(found):,} findings, the rarest first (--show N, --out DIR)",
        ]
    for f in rarest:
        text = f"task {f.task_id}, {f.category}, {f.field}: {brief(f.value)}: {f.problem} {f.mend}"
        lines += folded(text, width, most=3)
    sys.stdout.write("\n".join(lines) + "\n")


def _label(count: Count) -> str:
    return f"{count.category} = {' or '.join(count.union_of)}" if count.union_of else count.category


def _row(finding: Finding, value: str) -> tuple[object, ...]:
    f = finding
    return (f.task_id, f.category, f.field, value, f.problem, f.mend)


def write_findings(
    out: Path, kind: str, counted: Sequence[Count], found: Sequence[Finding]
) -> None:
    """Write ``lint.json`` and ``lint.csv``. Raises UserError."""
    write_json(out / "lint.json", {"kind": kind, "counts": counted, "findings": found})
    rows = (_row(finding, text_of(finding.value)) for finding in found)
    write_csv(out / "lint.csv", _COLUMNS, rows)
