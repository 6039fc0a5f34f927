"""Results about pictures, remembered for as long as their files are not changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from trajudge.trajectories.model import ImageRef

F = TypeVar("F", bound=Callable[..., Any])


class FileState(NamedTuple):
    """A file and what changes when somebody writes to it or puts another one in its place."""

    path: str
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def remembered(maxsize: int) -> Callable[[F], F]:
    """Remember what a function of an ImageRef (and of more, by position) returned for ``maxsize``
    files: called again with a file that has not changed since, it does not read it. What it raises
    is not remembered."""

    def decorate(function: F) -> F:
        @lru_cache(maxsize)
        def of_file(state: FileState, *more: Hashable) -> Any:
            return function(ImageRef(path=Path(state.path)), *more)

        @wraps(function)
        def remembering(ref: ImageRef, *more: Hashable) -> Any:
            state = _state(ref)
            return function(ref, *more) if state is None else of_file(state, *more)

        return cast(F, remembering)

    return decorate


def _state(ref: ImageRef) -> FileState | None:
    """Look at the file without opening it; None for an image that is no file."""
    if ref.path is None:
        return None
    path = os.fspath(ref.path)
    try:
        seen = os.stat(path)  # noqa: PTH116 - many times quicker
    except (OSError, ValueError):
        return None
    return FileState(
        path, seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
    )
