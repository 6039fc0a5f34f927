"""``--goals FILE``: goals of tasks, for runs whose own files do not contain them.

The file is a JSON object ``{task_id: goal}``, or a table (CSV, JSON, JSON lines, Parquet) with the
columns ``task_id`` and ``goal``. A loader whose format has no goal yields the trajectory with an
empty one; ``with_goals`` sets it, or makes the trajectory ``Unreadable`` without one, so that it is
counted for its agent and never judged without its task.

A data specification may name its goals: ``KIND:PATH::goals=FILE``. A run's folder records it, so
that the data are read with their goals again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.model import Loaded, Trajectory, Unreadable
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import UnsafeFile, read_regular, utf8
from trajudge.util.foreign_table import choose_column, read_rows
from trajudge.util.terminal import listed

MAX_BYTES = 64 * 2**20
_SHAPES = "a JSON object {task_id: goal}, or a table with the columns task_id and goal"
_TASKS = ("task_id", "task", "id")
_GOALS = ("goal", "intent", "instruction", "query", "question", "confirmed_task")
_MARK = "::goals="
_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class GoalsFile(NamedTuple):
    """The goals by task id, their file, and its SHA-256."""

    file: Path
    digest: str
    by_task: Mapping[str, str]

    def of(self, trajectory: Trajectory) -> str | None:
        """Return the goal of the raw task id, else of the canonical one."""
        raw = self.by_task.get(trajectory.raw_task_id)
        return raw if raw is not None else self.by_task.get(trajectory.key.task_id)


def split_goals(spec: str) -> tuple[str, Path | None]:
    """Split ``KIND:PATH::goals=FILE`` into the data and the file of its goals (None without
    one)."""
    source, mark, file = spec.rpartition(_MARK)
    return (source, Path(file).expanduser()) if mark and source and file else (spec, None)


def join_goals(source: str, file: Path | None) -> str:
    """Join data and the file of its goals, as ``split_goals`` parses them."""
    return f"{source}{_MARK}{file}" if file else source


def read_goals(file: Path) -> GoalsFile:
    """Read the goals of a file. Raises UserError for another format, a file without a goal, or a
    task with two goals."""
    try:
        content = read_regular(file, MAX_BYTES)
    except UnsafeFile as error:
        raise UserError(f"--goals {file}: {error}: name {_SHAPES}") from None
    except OSError as error:
        raise UserError(f"--goals {file}: {error.strerror}: name {_SHAPES}") from None
    goals: dict[str, str] = {}
    for location, task_id, goal in _entries(file, utf8(content, file)):
        task, wanted = _text(task_id), _text(goal)
        if not task or not wanted:
            raise UserError(f"--goals {file}: {location} has no task_id or no goal: write both")
        if goals.setdefault(task, wanted) != wanted:
            raise UserError(
                f"--goals {file}: {location} gives task {task!r} a second goal: keep one"
            )
    if not goals:
        raise UserError(f"--goals {file}: holds no goal: write {_SHAPES}")
    return GoalsFile(file, sha256(content).hexdigest(), goals)


def with_goals(items: Loaded, goals: GoalsFile | None) -> Loaded:
    """Replace the goal of every trajectory by the file's, if it has one; a trajectory without
    either becomes Unreadable."""
    for trajectory in items:
        if isinstance(trajectory, Unreadable):
            yield trajectory
            continue
        goal = goals.of(trajectory) if goals else None
        if goal is not None:
            yield (
                trajectory
                if goal == trajectory.goal
                else trajectory.model_copy(update={"goal": goal})
            )
        elif trajectory.goal.strip() or trajectory.goal_images:
            yield trajectory
        else:
            where = f"and {goals.file.name} has none either" if goals else "give --goals FILE"
            why = f"no goal for task {trajectory.raw_task_id!r} in the run's files; {where}"
            yield Unreadable(str(trajectory.key), why, trajectory.key)


def _entries(file: Path, content: bytes) -> Iterator[tuple[str, object, object]]:
    """Yield position, task id and goal of every entry."""
    try:
        value = python_json.decode(content, _JSON)
    except (ValueError, RecursionError):
        value = None
    is_record = isinstance(value, dict) and {"task_id", "goal"} <= value.keys()
    if (
        isinstance(value, dict)
        and not is_record
        and not any(isinstance(one, list) for one in value.values())
    ):
        yield from ((f"task {task!r}", task, goal) for task, goal in value.items())
        return
    try:
        table = read_rows(file)
        columns = [choose_column(table, names) for names in (_TASKS, _GOALS)]
    except UserError as error:
        raise UserError(f"--goals {error} (the file is {_SHAPES})") from None
    task, goal = columns
    if task is None or goal is None:
        has = listed([repr(name) for name in table.columns], 8)
        raise UserError(f"--goals {file}: has no column task_id or no goal, but {has}: rename them")
    for row, cells in enumerate(zip(table.column(task), table.column(goal), strict=True)):
        yield table.at(row), *cells


def _text(value: object) -> str:
    """Return an id or a goal as text; integers are valid ids."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else ""
