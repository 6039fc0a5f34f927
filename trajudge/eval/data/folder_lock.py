"""One process at a time in a run's folder: ``run.lock`` names its owner while it works there."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from trajudge.eval.data.run_folder import writing
from trajudge.trajectories.util.atomic import make_folder
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.file_lock import lock, remove
from trajudge.trajectories.util.safe_files import read_regular
from trajudge.trajectories.util.terminal import one_line

LOCK = "run.lock"
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder, which is made if it is not there.

    The lock of a process that died is taken over. Raises UserError if another process works there,
    naming it, and if the folder cannot be written.
    """
    path = folder / LOCK
    make_folder(folder, "--out")
    with writing(folder):
        descriptor = _locked(path)
    try:
        yield
    finally:
        if descriptor is not None:
            remove(path, descriptor)


def _locked(path: Path) -> int | None:
    """Lock the file, sign it and return its descriptor; None on a file system without locks."""
    try:
        descriptor = lock(path)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        sys.stderr.write(
            f"warning: {path.parent}: this file system has no locks ({error.strerror}): see that "
            "no other process judges into the same folder\n"
        )
        return None
    if descriptor is None:
        raise UserError(
            f"--out {path.parent}: {_owner(path)} is at work on this run: wait for it or end it, "
            "or choose another --out"
        )
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _signature())
    except OSError:
        remove(path, descriptor)
        raise
    return descriptor


def _signature() -> bytes:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    return orjson.dumps(owner, option=orjson.OPT_APPEND_NEWLINE)


def _owner(path: Path) -> str:
    """Who holds the lock, as the file tells."""
    try:
        told: Any = orjson.loads(read_regular(path))
        named = f"process {told['pid']} on {told['host']}, since {told['since']},"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    return one_line(named)
