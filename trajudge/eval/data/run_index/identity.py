"""How far an index has read a file, and whether that still belongs to what the file is now."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from trajudge.trajectories.util.safe_files import open_regular

_ENDS = 4_096  # bytes at either end of what was read


class ReadMark(NamedTuple):
    """``end`` bytes of the file with this ``number`` were read; ``ends`` hashes the first and last
    of them, ``changed`` is when it was changed then, in nanoseconds."""

    number: int = 0
    end: int = 0
    size: int = 0
    changed: int = 0
    ends: str = ""


def mark_of(path: Path, end: int) -> ReadMark:
    """Note that a file was read up to ``end``; of a file that is not there, nothing."""
    try:
        with open_regular(path) as file:
            status = path.stat()
            return ReadMark(
                status.st_ino, end, status.st_size, status.st_mtime_ns, _hash_of_ends(file, end)
            )
    except OSError:
        return ReadMark()


def is_continued(path: Path, mark: ReadMark) -> bool:
    """Tell whether the file is the one that was read, with nothing but more lines at its end."""
    try:
        with open_regular(path) as file:
            status = path.stat()
            if status.st_ino != mark.number or status.st_size < mark.size:
                return False
            if status.st_size == mark.size and status.st_mtime_ns != mark.changed:
                return False
            return _hash_of_ends(file, mark.end) == mark.ends
    except OSError:
        return mark == ReadMark()


def _hash_of_ends(file: BinaryIO, end: int) -> str:
    file.seek(0)
    first = file.read(min(_ENDS, end))
    file.seek(max(end - _ENDS, 0))
    return sha256(first + file.read(min(_ENDS, end))).hexdigest()
