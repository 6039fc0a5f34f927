"""SQLite files of the engine, and the user's error message for what goes wrong with them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import check_regular

BUSY_SECONDS = 60.0


def connect(path: Path, *, synchronous: str = "FULL") -> sqlite3.Connection:
    """Open a connection in autocommit. Raises sqlite3.Error, UnsafeFile."""
    check_regular(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def explained(error: Exception, path: Path) -> UserError:
    """Turn an error of SQLite or the system into the user's error message."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if isinstance(error, OSError) or code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return UserError(
            f"the cache {path} cannot be written ({error}): "
            "name a file in a folder that you may write to"
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return UserError(
            f"the cache {path} cannot grow ({error}): free space on that disk and start the same "
            "command again; everything that was answered before is kept"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return UserError(
            f"the cache {path} was held by another process for {BUSY_SECONDS:.0f} s: "
            "wait for that process or end it, and start the same command again"
        )
    return UserError(
        f"the cache {path} is damaged ({_first_line(error)}): "
        "move it away and start again, or restore a copy of it"
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
