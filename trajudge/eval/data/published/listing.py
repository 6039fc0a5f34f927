"""Which files of a folder are published judgments: ``BENCHMARK/AGENT/JUDGE/TASK_ID.json``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# A browser that downloads a file twice writes "name(1).json".
_DUPLICATE = re.compile(r"\(\d+\)$")
_ERROR = "_error"
_SUFFIX = ".json"
_AMBIGUOUS = (f"){_SUFFIX}", f"{_ERROR}{_SUFFIX}")
_LEVELS = 3  # of folders, down to the judge's


class JudgeFolder(NamedTuple):
    """The folder at ``path`` of one judge of an agent, and its files: raw task id -> name."""

    path: str
    benchmark: str
    agent: str
    judge: str
    files: dict[str, str]


def list_published(root: Path) -> list[JudgeFolder]:
    """List the folders of judges below ``root``, the folder of benchmarks, by path. Raises
    OSError for one that cannot be listed."""
    listed = []
    for path in _folders(root, _LEVELS):
        if files := _one_file_a_task(path):
            benchmark, agent, judge = path.parts[-_LEVELS:]
            listed.append(JudgeFolder(str(path), benchmark, agent, judge, files))
    return listed


def _folders(path: Path, levels: int) -> Iterator[Path]:
    """Yield the folders so many levels below, in the order of their paths; a link to a folder is
    one, and what is below a folder that may not be listed is not seen."""
    if not levels:
        yield path
        return
    names: list[str] = []
    with suppress(PermissionError):
        names = sorted(os.listdir(path))  # noqa: PTH208 - as below
    for name in names:
        if (inside := path / name).is_dir():
            yield from _folders(inside, levels - 1)


def _one_file_a_task(judge: Path) -> dict[str, str]:
    """Raw task id -> its file's name: an answer before an error, an original before a
    duplicate."""
    listed = os.listdir(judge)  # noqa: PTH208 - names are enough, and many times quicker
    names = [name for name in listed if name.endswith(_SUFFIX)]
    if not any(name.endswith(_AMBIGUOUS) for name in names):
        return {task_id: task_id + _SUFFIX for task_id in sorted(n[: -len(_SUFFIX)] for n in names)}
    candidates = []
    for file in names:
        name = _without_copy(file.removesuffix(_SUFFIX))
        task_id = _without_copy(name.removesuffix(_ERROR))
        candidates.append((task_id, name.endswith(_ERROR), len(file), file))
    files: dict[str, str] = {}
    for task_id, _, _, name in sorted(candidates):
        files.setdefault(task_id, name)
    return files


def _without_copy(name: str) -> str:
    return _DUPLICATE.sub("", name) if name.endswith(")") else name
