"""Task files and run files of WebArena: the benchmark's own, and the user's in the same form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.webarena.model import Run, Specification, Task
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder

_KNOWN = frozenset(Specification.__struct_encode_fields__) - {"_others"}
# WebChoreArena's evaluator reads alternatives there; to pass over them would fail right runs.
_DECISIVE = frozenset({"or"})


class _Keys(msgspec.Struct):
    eval: dict[str, Any]


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
        tasks: tuple[Task, ...] = (decode(data, Task, file),)
        keys: tuple[_Keys, ...] = (decode(data, _Keys, file),)
    else:
        tasks, keys = decode(data, tuple[Task, ...], file), decode(data, tuple[_Keys, ...], file)
    return [_with_others(task, each.eval, file) for task, each in zip(tasks, keys, strict=True)]


def _with_others(task: Task, spec: dict[str, Any], file: Path) -> Task:
    """Keep what other tools wrote into the specification. Raises UserError for a key that is a
    misspelt one of ours, or that would change the verdict."""
    others = {name: value for name, value in spec.items() if name not in _KNOWN}
    for name in others:
        close = get_close_matches(name, _KNOWN, n=1, cutoff=0.75)
        if close or name in _DECISIVE:
            mend = f"write {close[0]}" if close else "write the alternatives where they are read"
            raise UserError(
                f"{file}: task {task.task_id!r}: no rule reads eval.{name}: {mend} "
                "(see rules/schema.md)"
            )
    if not others:
        return task
    return msgspec.structs.replace(task, eval=msgspec.structs.replace(task.eval, others=others))


def unread_keys(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Name, in one sentence each, the keys of specifications that no rule reads."""
    counted = Counter(name for task in tasks for name in task.eval.unread)
    return tuple(
        f"eval.{name} ({count} of {len(tasks)} tasks) is none of WebArena's keys: no rule reads it"
        for name, count in counted.items()
    )


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
