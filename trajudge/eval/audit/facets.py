"""What a task is, from the task tables that come with a benchmark.

AgentRewardBench publishes ``webarena.csv``, ``visualwebarena.csv``, ``workarena.csv`` and
``assistantbench.csv`` beside its annotations; WebArena's ``test.raw.json`` knows the templates.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import msgspec

from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.trajectories.model import TrajectoryKey, canonical_task_id
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular, text_of, utf8

Facets = Mapping[str, tuple[str, ...]]
"""Facet to its values, such as ``{"evaluation": ("url_match", "string_match")}``."""

_COLUMNS = {
    "sites": "site",
    "eval_types": "evaluation",
    "overall_difficulty": "difficulty",
    "reasoning_difficulty": "reasoning difficulty",
    "visual_difficulty": "visual difficulty",
    "level": "level",
    "category": "category",
    "difficulty": "difficulty",
}
# Columns that hold several values with blanks between; a task counts with each of them.
_SEVERAL = {"sites", "eval_types"}
TABLES = ("webarena", "visualwebarena", "workarena", "assistantbench")


class _Task(msgspec.Struct):
    task_id: int
    intent_template_id: int


_MAX_BYTES = 256 * 2**20
_TASKS = msgspec.json.Decoder(list[_Task])


class TaskFacets:
    """Looks up the facets of a trajectory; every one has its benchmark and its agent."""

    def __init__(self, tasks: Mapping[tuple[str, str], Facets]) -> None:
        self._tasks = tasks

    def of(self, key: TrajectoryKey) -> dict[str, tuple[str, ...]]:
        known = self._tasks.get((key.benchmark, key.task_id), {})
        return {"benchmark": (benchmark_of(key),), "agent": (key.agent,), **known}


def read_facets(folder: Path | None, templates: Path | None) -> TaskFacets:
    """Read them from a folder with task tables, and a file of WebArena tasks; None leaves either
    out.

    Raises UserError for a table that cannot be read.
    """
    tasks: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for benchmark in TABLES if folder else ():
        path = Path(str(folder)) / f"{benchmark}.csv"
        if path.is_file():
            for task_id, facets in _table(path, benchmark):
                tasks[benchmark, task_id] = facets
    if templates is not None:
        for task_id, template in _templates(templates):
            tasks.setdefault(("webarena", task_id), {})["template"] = (template,)
    return TaskFacets(tasks)


def _table(path: Path, benchmark: str) -> list[tuple[str, dict[str, tuple[str, ...]]]]:
    try:
        text = text_of(read_regular(path, _MAX_BYTES), path)
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: is not a task table in CSV ({error})") from error
    if rows and "task_name" not in rows[0]:
        raise UserError(f"{path}: the column 'task_name' is missing in its first line")
    return [
        (
            canonical_task_id(benchmark, row["task_name"]),
            {
                facet: tuple(row[column].split()) if column in _SEVERAL else (row[column],)
                for column, facet in _COLUMNS.items()
                if row.get(column)
            },
        )
        for row in rows
    ]


def _templates(path: Path) -> list[tuple[str, str]]:
    try:
        tasks = _TASKS.decode(utf8(read_regular(path, _MAX_BYTES), path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"--templates {path}: is not a list of WebArena tasks with task_id and "
            f"intent_template_id ({error})"
        ) from error
    return [(f"webarena.{task.task_id}", str(task.intent_template_id)) for task in tasks]


def group_by(
    keys: list[TrajectoryKey], facets: TaskFacets
) -> dict[tuple[str, str], list[TrajectoryKey]]:
    """Map (facet, value) to its trajectories, facets in a fixed order, values by name."""
    groups: dict[tuple[str, str], list[TrajectoryKey]] = {}
    for key in keys:
        for facet, values in facets.of(key).items():
            for value in values:
                groups.setdefault((facet, value), []).append(key)
    order = ["benchmark", "agent", *dict.fromkeys(_COLUMNS.values()), "template"]
    placed = sorted(groups, key=lambda group: (order.index(group[0]), group[1]))
    return {group: groups[group] for group in placed}
