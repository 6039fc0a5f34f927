"""Runs on disk: one folder a task, named by its id, with the agent's answer and the trace."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.verified.dataset import Task, TaskId
from trajudge.rules.verified.network.events import Trace
from trajudge.rules.verified.network.read import load_trace
from trajudge.rules.verified.response import MAX_ANSWER, Oversized
from trajudge.rules.verified.state import STATE_FILE
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, open_regular

ANSWER_FILE = "agent_response.json"
CONFIG_FILE = "run_config.json"
"""Where the sites were in this run, as the released package reads it."""

_HEAD = 10_000
TRACE_FILES = (
    *("network.har", "network.har.zip", "network.zip", "network.har.gz"),
    *("trace.zip", "trace.network", "network.json"),
)


class RunFiles(NamedTuple):
    """The files of one run; None where there is none."""

    task_id: TaskId
    answer: Path | None
    trace: Path | None
    state: Path | None
    config: Path | None = None


def run_files(folder: Path, task_id: TaskId) -> RunFiles:
    """Return the files of a task's run, by their names. Nothing is read.

    Raises UserError for one that is no file or leads out of the folder: it is neither an answer
    nor the lack of one.
    """
    return folder_files(DataFolder(folder), folder / str(task_id), task_id)


def folder_files(data: DataFolder, own: Path, task_id: TaskId) -> RunFiles:
    """Return the files of a run in its own folder, as ``run_files`` does. Raises UserError."""
    traces = (_present(data, own / name, or_folder=True) for name in TRACE_FILES)
    return RunFiles(
        task_id,
        _present(data, own / ANSWER_FILE),
        next((path for path in traces if path is not None), None),
        _present(data, own / STATE_FILE),
        _present(data, own / CONFIG_FILE),
    )


def _present(data: DataFolder, path: Path, *, or_folder: bool = False) -> Path | None:
    if not path.exists():
        return None
    if not data.holds(path):
        raise UserError(f"{path}: leads out of {data.path}: put the file itself there")
    if not (path.is_file() or (or_folder and path.is_dir())):
        raise UserError(f"{path}: is not a file: put the run's own file there")
    return path


def found_runs(folder: Path, tasks: Mapping[str, Task]) -> list[str]:
    """Return the ids of the tasks that the folder holds runs of, in the order of the tasks.

    Raises UserError for a folder that is absent, holds no run, or holds a run of no known task.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: name the one that holds a folder for each task")
    names = {path.name for path in folder.iterdir() if path.is_dir() and _is_run(path)}
    if not names:
        raise UserError(
            f"{folder}: holds no run: a run is a folder TASK_ID with {ANSWER_FILE} and network.har"
        )
    strays = sorted(names - tasks.keys(), key=_natural)
    if strays:
        raise UserError(
            f"{folder / strays[0]}: the tasks know no task_id {strays[0]!r} "
            f"({len(strays)} such folders): name their task file by --tasks, or move them away"
        )
    return [task_id for task_id in tasks if task_id in names]


def _is_run(path: Path) -> bool:
    return any((path / name).exists() for name in (ANSWER_FILE, *TRACE_FILES))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part or 0) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def read_answer(path: Path | None) -> bytes | Oversized | None:
    """Return what the agent answered; of a file that is far too large only its beginning.

    Raises UserError for a file that cannot be read.
    """
    if path is None:
        return None
    try:
        with open_regular(path) as file:
            data = file.read(MAX_ANSWER + 1)
            size = os.fstat(file.fileno()).st_size
    except UnsafeFile as error:
        raise UserError(f"{path}: {error}: name a readable file") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a readable file") from error
    if len(data) > MAX_ANSWER:
        return Oversized(max(size, len(data)), data[:_HEAD])
    return data


def read_trace(path: Path | None) -> Trace | None:
    """Return the trace, None if there is no file. Raises UserError."""
    return None if path is None else load_trace(path)


def load_steps(path: Path) -> dict[str, float]:
    """Return steps of each run: a JSON object of task id to number. Raises UserError."""
    steps: dict[str, float] = decode(read_bytes(path), dict[str, float], path)
    return steps
