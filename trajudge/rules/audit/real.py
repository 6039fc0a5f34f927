"""REAL's task files (agisdk): listed and linted, not evaluated.

Their checks ask for the difference that a run made to the state of a site's replica (``jmespath``),
a language model (``llm_boolean``) or a script; runs recorded elsewhere hold no such difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from trajudge.rules.audit.findings import Finding, Severities, Severity, unreadable_finding
from trajudge.rules.audit.suites import Suite
from trajudge.rules.dialects import Dialect, raw_records
from trajudge.rules.reading import TaskFlaw, flaw_of, read_bytes
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

CATEGORIES: Severities = {
    "unreadable": Severity.ERROR,
    "vacuous": Severity.ERROR,
    "impossible": Severity.WARNING,
    "list_position": Severity.WARNING,
    "state_query": Severity.NOTE,
    "llm_evaluation": Severity.NOTE,
    "script": Severity.NOTE,
}
_OF_TYPES = {
    "jmespath": ("state_query", "query", "The site's state decides, which recorded runs lack."),
    "llm_boolean": ("llm_evaluation", "rubric", "The verdict depends on a language model."),
    "script": ("script", "script", "A script beside the task file decides; it is not run."),
}
_FIXES = {
    "state_query": "Record the state of the site, or check it in the benchmark's own harness.",
    "llm_evaluation": "Compare values of the state instead.",
    "script": "Read the script: the linter does not.",
}


class StateCheck(msgspec.Struct, frozen=True):
    """One entry of ``evals``; those of version 2 name a script and no type."""

    type: str = "script"
    description: str = ""
    query: str | None = None
    rubric: str | None = None
    script: str | None = None
    expected_value: Any = None


class Task(msgspec.Struct, frozen=True, rename={"task_id": "id", "intent": "goal"}):
    """One task; what the auditors do not ask for is ignored."""

    task_id: str
    intent: str
    evals: tuple[StateCheck, ...]
    possible: bool = True
    flaw: TaskFlaw | None = None


_TASK = msgspec.json.Decoder(Task)


def load_tasks(path: Path) -> tuple[Task, ...]:
    """Return the tasks of a file, or of the files of a folder. Raises UserError."""
    folder = DataFolder(path) if path.is_dir() else None
    tasks = []
    for file in sorted(path.glob("*.json")) if folder else [path]:
        for raw in raw_records(read_bytes(file, folder=folder), file):
            tasks.append(_task(bytes(raw), file.stem))
    return tuple(tasks)


def _task(data: bytes, name: str) -> Task:
    try:
        return msgspec.structs.replace(_TASK.decode(data), flaw=None)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return Task(name, "", (), flaw=flaw_of(error, data)[0])


def lint(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Yield what is worth knowing of each task, in the order of the tasks."""
    for task in tasks:
        if task.flaw:
            yield unreadable_finding(task.task_id, task.flaw)
        else:
            yield from _findings(task)


def _findings(task: Task) -> Iterator[Finding]:
    if not task.evals:
        fix = "Write what the run must have reached."
        yield Finding(task.task_id, "vacuous", "evals", [], "Nothing is checked.", fix)
    if not task.possible:
        problem = "The task cannot be done, so a run that did nothing may pass."
        fix = "Ask for evidence of a search."
        yield Finding(task.task_id, "impossible", "possible", False, problem, fix)
    for index, check in enumerate(task.evals):
        place = f"evals[{index}]"
        if check.type not in _OF_TYPES:
            problem = f"No harness of REAL reads the type {check.type!r}."
            fix = f"Use one of {', '.join(_OF_TYPES)}."
            yield Finding(task.task_id, "unreadable", f"{place}.type", check.type, problem, fix)
            continue
        category, field, problem = _OF_TYPES[check.type]
        value = getattr(check, field)
        yield Finding(task.task_id, category, f"{place}.{field}", value, problem, _FIXES[category])
        if check.type == "jmespath" and "[0]" in (check.query or ""):
            problem = "The position in a list decides, and another order is as right."
            fix = "Filter the list by the value that is looked for."
            yield Finding(
                task.task_id, "list_position", f"{place}.query", check.query, problem, fix
            )


def _notes(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Say what the tasks are checked by, in one sentence."""
    counted = Counter(check.type for task in tasks for check in task.evals)
    kinds = ", ".join(f"{count} {name}" for name, count in counted.most_common())
    return (
        f"tasks of REAL ({kinds} checks) are linted, not evaluated: their checks ask for the "
        "state of the site, which recorded runs do not hold",
    )


def _refuse(*_: object) -> NoReturn:
    """Raise UserError: these tasks are not evaluated."""
    raise UserError(
        "tasks of REAL are not evaluated: their checks ask for the state of the site: use "
        " trajudge rules lint  to see what they check"
    )


def suite(row: Dialect) -> Suite:
    """Return the suite of REAL's tasks."""
    return Suite(
        dialect=row.name,
        load=load_tasks,
        notes=_notes,
        lint=lint,
        categories=CATEGORIES,
        unions={},
        modes=("listed",),
        agents=(),
        evaluator=_refuse,
        idle_trace=_refuse,
        start_trace=_refuse,
        mutations=_refuse,
    )
