"""``--goals FILE``: what the tasks asked for, where the runs' own files do not say.

The file is a JSON object ``{task_id: goal}``, a JSON list or JSON Lines of objects with ``task_id``
and ``goal``, or CSV with these two columns. A loader whose format holds no goal yields the
trajectory with an empty one; ``with_goals`` fills it in, and makes the trajectory ``Unreadable``
where nobody told it, so that it is counted for its agent and never judged without its task.

Where data is named, its goals may be named with it: ``KIND:PATH::goals=FILE``. So a run's folder
says both, and whatever reads the run's data again reads it with its goals.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.model import Loaded, Trajectory, Unreadable
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import UnsafeFile, read_regular, utf8

MAX_BYTES = 64 * 2**20
_SHAPES = "a JSON object {task_id: goal}, JSON Lines, or CSV with the columns task_id and goal"
_MARK = "::goals="
_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class GoalsFile(NamedTuple):
    """The goals by task id, the file that they stand in, and its SHA-256."""

    file: Path
    digest: str
    by_task: Mapping[str, str]

    def of(self, trajectory: Trajectory) -> str | None:
        """Look the goal up by the raw task id, then by the canonical one."""
        raw = self.by_task.get(trajectory.raw_task_id)
        return raw if raw is not None else self.by_task.get(trajectory.key.task_id)


def split_goals(spec: str) -> tuple[str, Path | None]:
    """Split ``KIND:PATH::goals=FILE`` in the data and the file of its goals, None if none is
    named."""
    source, mark, file = spec.rpartition(_MARK)
    return (source, Path(file).expanduser()) if mark and source and file else (spec, None)


def join_goals(source: str, file: Path | None) -> str:
    """Name data and the file of its goals as ``split_goals`` takes them."""
    return f"{source}{_MARK}{file}" if file else source


def read_goals(file: Path) -> GoalsFile:
    """Read the goals of a file. Raises UserError for one that is none of the three shapes, holds
    no goal, or gives one task two goals."""
    try:
        content = read_regular(file, MAX_BYTES)
    except UnsafeFile as error:
        raise UserError(f"--goals {file}: {error}: name {_SHAPES}") from None
    except OSError as error:
        raise UserError(f"--goals {file}: {error.strerror}: name {_SHAPES}") from None
    goals: dict[str, str] = {}
    for place, task_id, goal in _entries(file, utf8(content, file)):
        task, wanted = _text(task_id), _text(goal)
        if not task or not wanted:
            raise UserError(f"--goals {file}: {place} has no task_id or no goal: write both")
        if goals.setdefault(task, wanted) != wanted:
            raise UserError(f"--goals {file}: {place} gives task {task!r} a second goal: keep one")
    if not goals:
        raise UserError(f"--goals {file}: holds no goal: write {_SHAPES}")
    return GoalsFile(file, sha256(content).hexdigest(), goals)


def with_goals(items: Loaded, goals: GoalsFile | None) -> Loaded:
    """Give every trajectory the goal that the file has for its task, in place of its own; one that
    has none from either becomes Unreadable."""
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
            yield Unreadable(
                str(trajectory.key), _missing(trajectory.raw_task_id, goals), trajectory.key
            )


def _missing(task_id: str, goals: GoalsFile | None) -> str:
    where = f"and {goals.file.name} has none either" if goals else "give --goals FILE"
    return f"no goal for task {task_id!r} in the run's files; {where}"


_Entry = tuple[str, object, object]


def _entries(file: Path, content: bytes) -> Iterator[_Entry]:
    """Yield place, task id and goal of every entry, by the file's suffix, else by its content."""
    try:
        if file.suffix.lower() == ".csv":
            yield from _of_table(content)
        elif file.suffix.lower() in (".jsonl", ".ndjson"):
            yield from _of_lines(content)
        else:
            try:
                value = python_json.decode(content, _JSON)
            except msgspec.DecodeError:
                yield from _of_lines(content)
            else:
                yield from _of_value(value)
    except (ValueError, RecursionError, csv.Error) as error:
        problem = " ".join(str(error).split())[:200]
        raise UserError(f"--goals {file}: is not {_SHAPES} ({problem})") from None


def _of_value(value: object) -> Iterable[_Entry]:
    if isinstance(value, list):
        return [_of_record(f"entry {number}", one) for number, one in enumerate(value, 1)]
    if isinstance(value, dict) and {"task_id", "goal"} <= value.keys():
        return [_of_record("the object", value)]
    if isinstance(value, dict):
        return [(f"task {task!r}", task, goal) for task, goal in value.items()]
    raise ValueError("its JSON is neither an object nor a list")


def _of_record(place: str, value: object) -> _Entry:
    if not isinstance(value, dict):
        raise ValueError(f"{place} is no object")
    return place, value.get("task_id"), value.get("goal")


def _of_lines(content: bytes) -> Iterator[_Entry]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            yield _of_record(f"line {number}", python_json.decode(line, _JSON))


def _of_table(content: bytes) -> Iterator[_Entry]:
    rows = csv.DictReader(io.StringIO(content.decode(), newline=""))
    if not {"task_id", "goal"} <= set(rows.fieldnames or ()):
        raise ValueError("its first line does not name task_id and goal")
    for row in rows:
        yield f"line {rows.line_num}", row["task_id"], row["goal"]


def _text(value: object) -> str:
    """Return an id or a goal as text: whole numbers are ids too."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else ""
