"""Task files and run files of WebArena: the benchmark's own, and the user's in the same form."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.webarena.model import Run, Task
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder


def load_tasks(path: Path) -> tuple[Task, ...]:
    """Return the tasks of a JSON list, of one JSON object, or of a folder of such files, in file
    order.

    Raises UserError for a file that cannot be read, holds no task, or holds a task id twice.
    """
    data = DataFolder(path) if path.is_dir() else None
    files = sorted(path.glob("*.json")) if data else [path]
    tasks = tuple(task for file in files for task in _tasks_in(file, data))
    if not tasks:
        raise UserError(f"{path}: holds no task: name a file of tasks (see rules/schema.md)")
    seen: set[str] = set()
    for task in tasks:
        if str(task.task_id) in seen:
            raise UserError(f"{path}: task id {task.task_id!r} occurs twice: give each its own")
        seen.add(str(task.task_id))
    return tasks


def _tasks_in(file: Path, folder: DataFolder | None) -> Iterable[Task]:
    data = read_bytes(file, folder=folder)
    if data.lstrip().startswith(b"{"):
        return (decode(data, Task, file),)
    tasks: tuple[Task, ...] = decode(data, tuple[Task, ...], file)
    return tasks


def load_runs(path: Path) -> tuple[Run, ...]:
    """Read runs from a JSON list, from JSON Lines, or from an object of answers by task id.

    Raises UserError for a file that cannot be read or holds no run.
    """
    data = read_bytes(path)
    runs = _runs_in(data, path)
    if not runs:
        raise UserError(f"{path}: holds no run: write one JSON object a line with task_id, answer")
    return runs


def _runs_in(data: bytes, path: Path) -> tuple[Run, ...]:
    text = data.strip()
    if text.startswith(b"["):
        listed: tuple[Run, ...] = decode(text, tuple[Run, ...], path)
        return listed
    if _is_one_object(text):
        record: dict[str, Any] = decode(text, dict[str, Any], path)
        if "task_id" in record:
            return (decode(text, Run, path),)
        answers: dict[str, str | None] = decode(text, dict[str, str | None], path)
        return tuple(Run(task_id=task_id, answer=answer) for task_id, answer in answers.items())
    lines = enumerate(text.splitlines(), start=1)
    return tuple(decode(line, Run, f"{path}:{number}") for number, line in lines if line.strip())


def _is_one_object(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True
