"""Connections to an index: one that writes, and readers that end after two seconds."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trajudge.eval.data.run_index.schema import TABLES, VERSION
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import check_regular

LIMIT = 2.0
"""Seconds that one reading may take."""
_STEPS = 20_000  # of SQLite's machine between two looks at the clock
_WAIT = 10.0  # seconds for another process that writes


@contextmanager
def writing_to(place: Path) -> Iterator[sqlite3.Connection]:
    """Open the index in a transaction that is kept if the block ends well. An index of another
    version, or a file that is none, is begun anew. Raises UserError if it cannot be written."""
    connection = _begun(place)
    try:
        connection.execute("begin immediate")
        yield connection
        connection.commit()
    except sqlite3.OperationalError as error:
        raise _unwritable(place, error) from error
    finally:
        if connection.in_transaction:
            connection.rollback()
        connection.close()


def _begun(place: Path) -> sqlite3.Connection:
    """Open the index, or begin it anew. One that another process is writing stays."""
    try:
        try:
            return _opened(place)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            _remove(place)
            return _opened(place)
    except (OSError, sqlite3.OperationalError) as error:
        raise _unwritable(place, error) from error


def _unwritable(place: Path, error: Exception) -> UserError:
    return UserError(
        f"{place}: the index cannot be written ({error}): name another folder with TRAJUDGE_CACHE"
    )


def _opened(place: Path) -> sqlite3.Connection:
    place.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    connection = _connected(place)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        version = connection.execute("pragma user_version").fetchone()[0]
        if version == VERSION:
            connection.execute("select count(*) from meta").fetchone()
            return connection
        if version:
            raise sqlite3.DatabaseError("another version")
        connection.executescript(f"begin immediate; {TABLES} pragma user_version = {VERSION};")
        connection.commit()
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _connected(place: Path) -> sqlite3.Connection:
    check_regular(place)
    return sqlite3.connect(place, timeout=_WAIT, isolation_level=None, check_same_thread=False)


def _remove(place: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            place.with_name(place.name + suffix).unlink()


@contextmanager
def reading_from(place: Path, limit: float = LIMIT) -> Iterator[sqlite3.Connection]:
    """Open the index for reading, all of it as it is now. Raises UserError for a query that takes
    longer than ``limit`` seconds."""
    connection = _connected(place)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("pragma query_only = on")
        end = time.monotonic() + limit
        connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        connection.execute("begin")
        yield connection
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        raise UserError(
            f"This takes longer than {limit:g} seconds: narrow the filter or drop the sorting."
        ) from error
    finally:
        connection.close()
