"""Files that are locked as long as the process that made them lives (``flock``).

The kernel drops the lock when the process ends, however it ends, so a file that can be locked has
no living owner. Holds between the processes of one machine; over NFS as far as the mount passes
``flock`` on to the server (Linux does so unless it is mounted with ``local_lock``).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def lock(path: Path, *, create: bool = True) -> int | None:
    """Lock the file at ``path`` and give its descriptor; None if a living process has it.

    Without ``create`` also None if there is no such file. What is written to it goes to its end.
    ``remove`` it, or close the descriptor, to let go. Raises OSError.
    """
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
    while True:
        try:
            descriptor = os.open(path, flags, 0o644)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # its owner removed it in between: what is there now counts


def is_locked(path: Path) -> bool:
    """Tell whether a living process has locked the file. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove(path: Path, descriptor: int) -> None:
    """Remove a file that this process has locked, then let go of it."""
    path.unlink(missing_ok=True)
    os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
