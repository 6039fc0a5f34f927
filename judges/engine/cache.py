"""What was answered, kept by the content of the question, so that nothing is ever asked twice.

One SQLite file in write-ahead mode. Replies that arrive while a commit is under way become the
next commit together, so that durable writes cost a fraction of an fsync each.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import ValidationError

from judges.adapters.errors import ContextOverflow, Refused
from judges.model import Reply, Request
from trajectories.errors import UserError

APPLICATION = 0x74726A63  # "trjc", in the file's header: whose file this is
VERSION = 1
BUSY_SECONDS = 60.0

# The table grows at its end; only the small index is written in random order.
SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    request  BLOB NOT NULL UNIQUE,  -- SHA-256 of the request
    outcome  TEXT NOT NULL,         -- reply, refused or context_overflow
    body     TEXT NOT NULL,         -- JSON of the reply, or the error's sentence
    endpoint TEXT NOT NULL,
    model    TEXT NOT NULL,
    created  REAL NOT NULL          -- seconds since 1970
)
"""
INSERT = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)"
SELECT = "SELECT outcome, body FROM answers WHERE request = ?"

Outcome = Reply | Refused | ContextOverflow
"""What is worth keeping: asking again would cost the same money or fail the same way."""

Row = tuple[bytes, str, str, str, str, float]


class Cache:
    """The answers in the file at ``path``, which is created if it is not there.

    Several processes may share it. Raises UserError if the file is not a cache, is damaged, was
    written by a newer version, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[tuple[Row, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._reader = _connect(path)
            _prepare(self._reader, path)
            self._writer = _connect(path)
        except (sqlite3.Error, OSError) as error:
            raise _explained(error, path) from error
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache")

    def get(self, request_hash: str) -> Outcome | None:
        """What was answered to this request, or None. Takes microseconds. Raises UserError."""
        try:
            row = self._reader.execute(SELECT, (bytes.fromhex(request_hash),)).fetchone()
            return None if row is None else _outcome(*row)
        except (sqlite3.Error, ValidationError) as error:
            raise _explained(error, self.path) from error

    async def put(self, request: Request, outcome: Outcome) -> None:
        """Keep an answer; returns when it is on the disk.

        The answer is queued before the first suspension: it is written even if the caller is
        cancelled. Raises UserError if it cannot be written.
        """
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._pending.append((_row(request, outcome), written))
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write())
        await written

    async def _write(self) -> None:
        """Commit what is pending, all of it at once, until nothing is."""
        loop = asyncio.get_running_loop()
        while self._pending:
            batch, self._pending = self._pending, []
            error: UserError | None = None
            try:
                await loop.run_in_executor(self._thread, self._commit, [row for row, _ in batch])
            except sqlite3.Error as failure:
                error = _explained(failure, self.path)
                error.__cause__ = failure
            for _, written in batch:
                if written.done():
                    continue
                if error is None:
                    written.set_result(None)
                else:
                    written.set_exception(error)

    def _commit(self, rows: list[Row]) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            self._writer.executemany(INSERT, rows)
            self._writer.execute("COMMIT")
        except sqlite3.Error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    async def close(self) -> None:
        """Write what is pending and close the file."""
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()
        self._reader.close()
        self._writer.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check whose file it is before anything is written to it, then see that it is ready."""
    version, application = (
        _pragma(connection, "user_version"),
        _pragma(connection, "application_id"),
    )
    is_new = not _pragma(connection, "schema_version")
    if not is_new and application != APPLICATION:
        raise UserError(
            f"{path} is a SQLite file but not a cache of trajudge: name another file for the cache"
        )
    if version > VERSION:
        raise UserError(
            f"{path} is a cache of version {version} and this trajudge reads up to {VERSION}: "
            "update trajudge, or name another file for the cache"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    if is_new:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(SCHEMA)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def _row(request: Request, outcome: Outcome) -> Row:
    match outcome:
        case Reply():
            kind, body = "reply", outcome.model_dump_json(exclude_defaults=True)
        case Refused():
            kind, body = "refused", str(outcome)
        case ContextOverflow():
            kind, body = "context_overflow", str(outcome)
    key = bytes.fromhex(request.hash)
    return (key, kind, body, request.endpoint, request.model, time.time())


def _outcome(kind: str, body: str) -> Outcome:
    match kind:
        case "reply":
            return Reply.model_validate_json(body)
        case "refused":
            return Refused(body)
        case "context_overflow":
            return ContextOverflow(body)
        case _:
            raise sqlite3.DatabaseError(f"unknown outcome {kind!r}")


def _explained(error: Exception, path: Path) -> UserError:
    """The user's sentence for what SQLite or the system says."""
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
