"""The kinds of task files that the auditors read, and what each kind brings.

A kind is a module, imported when a file of that kind is met, with these names:

* ``detect(record) -> bool``: whether one task record, as a dict, is of this kind;
* ``load(path) -> Sequence[task]``: tasks with ``task_id`` and ``intent``; raises UserError;
* ``lint(tasks) -> Iterator[Finding]``, ``CATEGORIES`` and ``UNIONS``: for ``rules.lint``;
* ``MODES``, ``evaluator(mode)`` and ``AGENTS``: for ``rules.naive``, the first mode the default;
* ``idle_trace(task)``: the trace of a run that did nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from rules.findings import Finding
from rules.naive_agents import AuditedTask, NaiveAgent
from rules.reading import decode, read_bytes
from rules.verdict import Evaluator
from trajectories.errors import UserError

KINDS: Mapping[str, str] = {
    "webarena": "rules.webarena.suite",
    "verified": "rules.verified.suite",
}


class Suite(Protocol):
    """One kind of task files, as its module offers it."""

    CATEGORIES: Sequence[str]
    UNIONS: Mapping[str, tuple[str, ...]]
    MODES: Sequence[str]
    AGENTS: Sequence[NaiveAgent]
    detect: Callable[[Mapping[str, Any]], bool]
    load: Callable[[Path], Sequence[AuditedTask]]
    lint: Callable[[Sequence[AuditedTask]], Iterator[Finding]]
    evaluator: Callable[[str], Evaluator[AuditedTask, Any]]
    idle_trace: Callable[[AuditedTask], Any]


def suite(kind: str) -> Suite:
    """The suite of a kind. Raises UserError for a kind that there is none of."""
    if kind not in KINDS:
        raise UserError(f"no kind {kind!r} of task files: use one of {', '.join(KINDS)}")
    return cast(Suite, importlib.import_module(KINDS[kind]))


def detected(path: Path) -> str:
    """The kind of a task file, of a folder by its first file. Raises UserError if none fits."""
    record = _first_record(path)
    for kind in KINDS:
        if suite(kind).detect(record):
            return kind
    raise UserError(
        f"{path}: its tasks are of no known kind ({', '.join(KINDS)}): name it by --kind"
    )


def _first_record(path: Path) -> dict[str, Any]:
    file = next(iter(sorted(path.glob("*.json"))), path) if path.is_dir() else path
    data = read_bytes(file)
    if data.lstrip().startswith(b"["):
        records = decode(data, list[msgspec.Raw], file)
        if not records:
            raise UserError(f"{file}: holds no task: name a file of tasks (see rules/schema.md)")
        data = bytes(records[0])
    record: dict[str, Any] = decode(data, dict[str, Any], file)
    return record
