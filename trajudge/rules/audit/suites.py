"""What each dialect of task files brings for the auditors.

The module of a dialect's form has a function ``suite``, and is imported when such a file is met.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trajudge.rules.audit.agents import BlindAgent
from trajudge.rules.audit.findings import Finding, Severities, Severity
from trajudge.rules.dialects import Dialect, detected, dialect
from trajudge.rules.verdict import Evaluator
from trajudge.util.errors import UserError
from trajudge.util.tables import all_folded

if TYPE_CHECKING:
    from trajudge.rules.audit.mutation import MutationSuite
    from trajudge.rules.verified.network import Hosts


@dataclass(frozen=True)
class Suite:
    """What one dialect brings.

    ``load`` reads tasks with ``task_id``, ``intent`` and ``flaw``, and raises UserError. ``lint``,
    ``categories`` with their severities, and ``unions`` are for the linter.
    ``modes`` are the evaluator's, the first the
    default; ``evaluator`` makes it for blind agents (``agents``), ``idle_trace`` and
    ``start_trace`` are the traces of their runs: of a browser that was not used, and of one that
    opened the start page. ``mutations`` makes a mutation suite: correct runs, built or read from a
    path, and how to change them. ``notes`` says what of the tasks no rule reads.
    """

    dialect: str
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
            raise UserError(f"--mode {asked}: {self.dialect} tasks have {', '.join(self.modes)}")
        return asked


_MODULES = {
    "webarena": "trajudge.rules.audit.webarena",
    "verified": "trajudge.rules.audit.verified",
    "real": "trajudge.rules.audit.real",
}


def suite(row: Dialect) -> Suite:
    """Return the suite of a dialect."""
    made: Suite = importlib.import_module(_MODULES[row.form]).suite(row)
    return made


class TaskSet(NamedTuple):
    """A task file, read by its suite, and the mode of its evaluator."""

    path: Path
    suite: Suite
    mode: str
    tasks: Sequence[Any]


def open_tasks(path: Path, named: str | None = None, mode: str | None = None) -> TaskSet:
    """Read a task file; None recognises its dialect and takes the dialect's first mode. What cannot
    be read of the tasks, and what no rule reads, is named on standard error.

    Raises UserError.
    """
    rules = suite(dialect(named) if named else detected(path))
    tasks = rules.load(path)
    flawed = [task for task in tasks if task.flaw]
    said = (
        [
            f"{len(flawed)} of {len(tasks)} tasks cannot be read and are unknown, such as task "
            f"{flawed[0].task_id}: {flawed[0].flaw}"
        ]
        if flawed
        else []
    )
    notes = all_folded(f"note: {path.name}: {note}" for note in [*said, *rules.notes(tasks)])
    sys.stderr.writelines(f"{line}\n" for line in notes)
    return TaskSet(path, rules, rules.mode(mode), tasks)


def chosen_categories(wanted: Sequence[str] | None, least: Severity, rules: Suite) -> Severities:
    """Return the categories to report, at least so severe; a union's name stands for its parts.

    Raises UserError for a category that tasks of this dialect do not have.
    """
    chosen: set[str] = set()
    for name in wanted or rules.categories:
        parts = rules.unions.get(name, (name,))
        if not set(parts) <= {*rules.categories}:
            known = ", ".join((*rules.categories, *rules.unions))
            raise UserError(f"--category {name}: {rules.dialect} tasks have {known}")
        chosen |= set(parts)
    severe = {name: one for name, one in rules.categories.items() if one.rank <= least.rank}
    return {name: severity for name, severity in severe.items() if name in chosen}
