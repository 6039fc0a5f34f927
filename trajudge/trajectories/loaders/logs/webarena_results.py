"""How the runs of a WebArena results folder ended: rewards in its logs, errors in ``error.txt``.

``run.py`` logs ``[Result] (PASS) <config file>`` or ``(FAIL)``, and writes the runs that crashed
into ``error.txt``; the config file's name is the task id. A ``results.json`` of numbers by task id
counts where no log names the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from trajudge.trajectories.loaders.common.lazy_json import NULL, decoded, read_object
from trajudge.trajectories.loaders.files import reason
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.util.safe_files import MARK_BYTES, DataFolder, NotUtf8, UnsafeFile, utf8

MAX_LOGS = 200
MAX_LOG_BYTES = 64 * 2**20
_MAX_LINE_BYTES = 4_096
_LOGS = ("log_files/*.log", "*.log", "merged_log.txt")
_RESULT = re.compile(rb"\[Result\] \((PASS|FAIL)\) (?:\S*[/\\])?([\w.-]{1,100})\.json\s*$")
_CONFIG = re.compile(rb"\[Config file\]: (?:\S*[/\\])?([\w.-]{1,100})\.json\s*$")
_ERROR = re.compile(rb"\[Unhandled Error\] (.*)")


class FolderResults(NamedTuple):
    """Rewards and errors by task id; ``warnings`` are of files that are not read."""

    rewards: dict[str, float]
    errors: dict[str, str]
    warnings: tuple[str, ...]


def read_results(folder: Path, root: DataFolder) -> FolderResults:
    """Read the logs, ``results.json`` and ``error.txt`` of a folder; the last line on a task
    counts."""
    warnings: list[str] = []
    rewards = _table(folder / "results.json", root, warnings)
    for log in islice((log for name in _LOGS for log in sorted(folder.glob(name))), MAX_LOGS):
        for line in _lines(log, root, warnings):
            if match := _RESULT.search(line):
                rewards[match[2].decode()] = float(match[1] == b"PASS")
    errors: dict[str, str] = {}
    named = None
    for line in _lines(folder / "error.txt", root, warnings):
        if config := _CONFIG.search(line):
            named = config[1].decode()
        elif named and (error := _ERROR.match(line)):
            errors[named] = " ".join(error[1].decode("utf-8", "replace").split())[:300]
    return FolderResults(rewards, errors, tuple(warnings))


def _table(file: Path, root: DataFolder, warnings: list[str]) -> dict[str, float]:
    if not root.has_file(file):
        return {}
    values = Values(warnings)
    try:
        stated = read_object(root, file, max_bytes=MAX_LOG_BYTES)
        rewards = {}
        for task, raw in stated.items():
            field, place = f"reward of task {task[:80]}", f"in {file.name}"
            reward = values.number(decoded(raw), field, place)
            if reward is not None:
                rewards[task] = reward
            elif raw == NULL:  # NaN, too
                values.refuse(None, field, place)
    except ValueError as error:
        warnings.append(f"{file.name} is no JSON object of rewards by task id ({reason(error)}).")
        return {}
    return rewards


def _lines(file: Path, root: DataFolder, warnings: list[str]) -> Iterator[bytes]:
    """Yield the beginnings of the lines; what is no file or too large goes to ``warnings``."""
    try:
        with root.open(file, MAX_LOG_BYTES) as opened:
            utf8(opened.read(MARK_BYTES), file)
            opened.seek(0)
            yield from _bounded(opened)
    except FileNotFoundError:
        return
    except (OSError, UnsafeFile, NotUtf8) as error:
        warnings.append(f"{file.name} is not read: {reason(error)}.")


def _bounded(opened: BinaryIO) -> Iterator[bytes]:
    """Yield lines of 4 KiB at most; the rest of a longer one is passed over."""
    begins = True
    while line := opened.readline(_MAX_LINE_BYTES):
        if begins:
            yield line
        begins = line.endswith(b"\n")
