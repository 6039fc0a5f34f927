"""Cheap looks at a path, so that a format is known by its marks before anything is decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from trajudge.trajectories.util.safe_files import UnsafeFile, open_regular, utf8

HEAD_BYTES = 64 * 2**10
MAX_FILES = 20
LEVELS = 2
MAX_FOLDERS = 400
_TEXTS = ("*.json*", "*.html")


def head(file: Path) -> bytes:
    """Read the first 64 KiB of a regular file; nothing of anything else."""
    try:
        with open_regular(file) as opened:
            return opened.read(HEAD_BYTES)
    except (OSError, UnsafeFile):
        return b""


def check_utf8(path: Path) -> None:
    """Raise NotUtf8 for a file in UTF-16, and for a folder with such a file among the first 20 that
    are JSON or pages: no format knows its marks."""
    inside = (file for pattern in _TEXTS for file in files(path, pattern, max_folders=MAX_FOLDERS))
    for file in [path] if path.is_file() else islice(inside, MAX_FILES):
        utf8(head(file), file)


def some_file(path: Path, pattern: str, has_mark: Callable[[bytes], bool]) -> bool:
    """Tell whether the path is a file whose first 64 KiB have the mark, or a folder with such a
    file, whose name matches ``pattern``, at most two levels down; at most 20 files in 400 folders
    are looked at."""
    if path.is_file():
        return has_mark(head(path))
    return any(
        has_mark(head(file))
        for file in islice(files(path, pattern, max_folders=MAX_FOLDERS), MAX_FILES)
    )


def files(
    path: Path, pattern: str, *, levels: int = LEVELS, max_folders: int | None = None
) -> Iterator[Path]:
    """Yield what has a name that matches ``pattern`` in a folder, by level and then by name, from
    ``levels`` levels down at most; a pipe or a folder of that name is one too, so that a loader
    names it as unreadable. Folders that are hidden or links are passed over, and so are
    those beyond the first ``max_folders`` (None: all are looked at)."""
    level, looked_at = [path] if path.is_dir() else [], 0
    for depth in range(levels + 1):
        deeper: list[Path] = []
        for folder in level:
            if looked_at == max_folders:
                return
            looked_at += 1
            inside = sorted(folder.iterdir())
            yield from (entry for entry in inside if entry.match(pattern))
            if depth < levels:
                deeper += [entry for entry in inside if _is_open_folder(entry)]
        level = deeper


def _is_open_folder(entry: Path) -> bool:
    return not entry.name.startswith(".") and not entry.is_symlink() and entry.is_dir()
