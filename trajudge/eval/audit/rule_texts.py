"""What the rule of a task demands, as its authors wrote it in a task file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular, utf8

_MAX_BYTES = 256 * 2**20
_NUMBERED = "webarena"


class _Task(msgspec.Struct):
    task_id: int | str
    eval: Any
    intent: str = ""


_TASKS = msgspec.json.Decoder(list[_Task])


class RuleText(NamedTuple):
    """The ``intent`` of the task as the file words it, and its specification as indented JSON
    (``eval``), without the fields that are empty."""

    intent: str
    specification: str


def read_rule_texts(path: Path) -> Mapping[str, RuleText]:
    """Read a task file of WebArena, WebArena Verified or another benchmark in that layout: a list
    of objects with ``task_id`` and ``eval``. By task id; a number is a task of WebArena.

    Raises UserError for a file that is none.
    """
    try:
        tasks = _TASKS.decode(utf8(read_regular(path, _MAX_BYTES), path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"--tasks {path}: is not a list of tasks with task_id and eval ({error})"
        ) from error
    return {
        _name(task.task_id): RuleText(
            task.intent, orjson.dumps(_filled(task.eval), option=orjson.OPT_INDENT_2).decode()
        )
        for task in tasks
    }


def rule_text(texts: Mapping[str, RuleText], key: TrajectoryKey) -> RuleText | None:
    """Find the rule of a trajectory's task."""
    return texts.get(key.task_id)


def _name(task_id: int | str) -> str:
    return f"{_NUMBERED}.{task_id}" if isinstance(task_id, int) else task_id


def _filled(value: Any) -> Any:
    """Leave out what says nothing: empty texts, lists and objects."""
    if isinstance(value, dict):
        kept = {name: _filled(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in ("", [], {}, None)}
    return [_filled(each) for each in value] if isinstance(value, list) else value
