"""What an auditor says of a task: one weakness of its specification, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
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
    """One count for each category, also for those without findings, then one for each union.

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
