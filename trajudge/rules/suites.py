"""The kinds of task files that the auditors read, and what each kind brings.

A kind is a module with a ``SUITE``, imported when a file of that kind is met.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trajudge.rules.blind.agents import BlindAgent
from trajudge.rules.findings import Finding, Severities, Severity
from trajudge.rules.options import KINDS
from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.verdict import Evaluator
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder
from trajudge.trajectories.util.tables import all_folded

if TYPE_CHECKING:
    from trajudge.rules.mutation.testing import MutationSuite
    from trajudge.rules.verified.network.sites import Hosts


@dataclass(frozen=True)
class Suite:
    """One kind of task files.

    ``detect`` tells whether one task record, as a dict, is of this kind; ``load`` reads tasks with
    ``task_id`` and ``intent``, and raises UserError. ``lint``, ``categories`` with their
    severities, and ``unions`` are for the linter. ``modes`` are the evaluator's, the first the
    default; ``evaluator`` makes it for blind agents (``agents``), ``idle_trace`` and
    ``start_trace`` are the traces of their runs: of a browser that was not used, and of one that
    opened the start page. ``mutations`` makes a mutation suite: correct runs, built or read from a
    path, and how to change them. ``notes`` says what of the tasks no rule reads.
    """

    kind: str
    detect: Callable[[Mapping[str, Any]], bool]
    load: Callable[[Path], Sequence[Any]]
    lint: Callable[[Sequence[Any]], Iterator[Finding]]
    categories: Severities
    unions: Mapping[str, tuple[str, ...]]
    modes: Sequence[str]
    agents: Sequence[BlindAgent]
    evaluator: Callable[[str], Evaluator[Any, Any]]
    idle_trace: Callable[[Any], Any]
    start_trace: Callable[[Any], Any]
    mutations: Callable[[Sequence[Any], Path | None, str, Hosts], MutationSuite]
    notes: Callable[[Sequence[Any]], Sequence[str]] = lambda tasks: ()

    def mode(self, asked: str | None) -> str:
        """Return the mode that was asked for, the default for None. Raises UserError for any
        other."""
        if asked is None:
            return self.modes[0]
        if asked not in self.modes:
            raise UserError(f"--mode {asked}: {self.kind} tasks have {', '.join(self.modes)}")
        return asked


def suite(kind: str) -> Suite:
    """Return the suite of a kind. Raises UserError for a kind that there is none of."""
    if kind not in KINDS:
        raise UserError(f"no kind {kind!r} of task files: use one of {', '.join(KINDS)}")
    found: Suite = importlib.import_module(KINDS[kind]).SUITE
    return found


def detected(path: Path) -> str:
    """Return the kind of a task file, of a folder by its first file. Raises UserError if none
    fits."""
    record = _first_record(path)
    for kind in KINDS:
        if suite(kind).detect(record):
            return kind
    raise UserError(
        f"{path}: its tasks are of no known kind ({', '.join(KINDS)}): name it by --kind"
    )


class TaskSet(NamedTuple):
    """A task file, read by its suite, and the mode of its evaluator."""

    path: Path
    suite: Suite
    mode: str
    tasks: Sequence[Any]


def open_tasks(path: Path, kind: str | None = None, mode: str | None = None) -> TaskSet:
    """Read a task file; None detects its kind and takes the kind's first mode. What no rule reads
    of the tasks is named on standard error.

    Raises UserError.
    """
    rules = suite(kind or detected(path))
    tasks = rules.load(path)
    notes = all_folded(f"note: {path.name}: {note}" for note in rules.notes(tasks))
    sys.stderr.writelines(f"{line}\n" for line in notes)
    return TaskSet(path, rules, rules.mode(mode), tasks)


def _first_record(path: Path) -> dict[str, Any]:
    folder = DataFolder(path) if path.is_dir() else None
    file = next(iter(sorted(path.glob("*.json"))), None) if folder else path
    if file is None:
        raise UserError(f"{path}: holds no .json file: name a file of tasks, or a folder of them")
    data = read_bytes(file, folder=folder)
    if data.lstrip().startswith(b"["):
        records = decode(data, list[msgspec.Raw], file)
        if not records:
            raise UserError(f"{file}: holds no task: name a file of tasks (see rules/schema.md)")
        data = bytes(records[0])
    record: dict[str, Any] = decode(data, dict[str, Any], file)
    return record


def chosen_categories(wanted: Sequence[str] | None, least: Severity, rules: Suite) -> Severities:
    """Return the categories to report, at least so severe; a union's name stands for its parts.

    Raises UserError for a category that tasks of this kind do not have.
    """
    chosen: set[str] = set()
    for name in wanted or rules.categories:
        parts = rules.unions.get(name, (name,))
        if not set(parts) <= {*rules.categories}:
            known = ", ".join((*rules.categories, *rules.unions))
            raise UserError(f"--category {name}: {rules.kind} tasks have {known}")
        chosen |= set(parts)
    severe = {name: one for name, one in rules.categories.items() if one.rank <= least.rank}
    return {name: severity for name, severity in severe.items() if name in chosen}
