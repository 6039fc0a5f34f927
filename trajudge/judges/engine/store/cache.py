"""Cache of answers, keyed by the content of the request.

One SQLite file in write-ahead mode. Replies that arrive within ``GATHER`` seconds, or while a
commit is under way, become one commit, so that durable writes cost a fraction of an fsync each.
Beside it stand ``.log-*`` (``judges.engine.store.reply_log``): replies on their way into it, which
survive a kill; and ``.claims`` (``judges.engine.store.leases``): requests that are under way now,
by process.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from trajudge.judges.engine.store.leases import LEASE_SECONDS, Leases
from trajudge.judges.engine.store.reply_log import ReplyLog, ReplyRow, left_behind
from trajudge.judges.engine.store.rows import Outcome, RequestKey, outcome_of, row_of
from trajudge.judges.engine.store.sqlite_files import connect, explained
from trajudge.trajectories.util.errors import UserError

APPLICATION = 0x74726A63  # "trjc", in the file's header: whose file this is
VERSION = 1
GATHER = 0.05  # seconds that a reply waits for others at most, while others are under way

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
ROW = "(?, ?, ?, ?, ?, ?)"
REPLACE = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)"
# One statement for several rows: after each its thread waits for that of the event loop. FAIL keeps
# SQLite from writing down what it would need to undo the statement: the transaction is undone.
INSERT = "INSERT OR FAIL INTO answers VALUES "
ROWS_AT_ONCE = 32
RECOVER = """
INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (request) DO UPDATE SET
    outcome = excluded.outcome, body = excluded.body, created = excluded.created
WHERE excluded.created > answers.created
"""
SELECT = "SELECT outcome, body FROM answers WHERE request = ?"
CREATED = "SELECT created FROM answers WHERE request = ?"


class Cache:
    """Answers in the file at ``path``, which is created if it is not there.

    Several processes may share it; ``lease`` is how many seconds one of them may be silent before
    others repeat its requests. Raises UserError if the file is not a cache, is damaged, was written
    by a newer version, or cannot be written.
    """

    def __init__(self, path: Path, lease: float = LEASE_SECONDS) -> None:
        self.path = path
        self._lease = lease
        self._log = ReplyLog(path)
        self._pending: list[tuple[ReplyRow, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._gathering: asyncio.TimerHandle | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._reader = connect(path)
            _prepare(self._reader, path)
            self._writer = connect(path)
        except (sqlite3.Error, OSError) as error:
            raise explained(error, path) from error
        self.recover()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache")

    def get(self, request_hash: str) -> Outcome | None:
        """Return the answer to this request, or None. Takes microseconds. Raises UserError."""
        try:
            row = self._reader.execute(SELECT, (bytes.fromhex(request_hash),)).fetchone()
            return None if row is None else outcome_of(*row)
        except (sqlite3.Error, ValidationError) as error:
            raise explained(error, self.path) from error

    @cached_property
    def leases(self) -> Leases:
        """Leases on the requests that are under way. Raises UserError."""
        return Leases(self.path.with_name(self.path.name + ".claims"), self._lease)

    def release(self, request_hash: str) -> None:
        """Give the lease on a request back."""
        self.leases.release(bytes.fromhex(request_hash))

    def created(self, request_hash: str) -> float:
        """Return when the answer was kept, in seconds since 1970; 0 without one. Raises
        UserError."""
        try:
            row = self._reader.execute(CREATED, (bytes.fromhex(request_hash),)).fetchone()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        return 0.0 if row is None else float(row[0])

    def recover(self) -> None:
        """Take in what killed processes had received and not committed. Raises UserError."""
        try:
            with left_behind(self.path) as rows:
                if rows:
                    _recover(self._reader, rows)
        except (sqlite3.Error, OSError) as error:
            raise explained(error, self.path) from error

    async def put(self, request: RequestKey, outcome: Outcome) -> None:
        """Keep an answer; returns when it is on the disk.

        Before the first suspension it is in the log, where a kill does not reach it, and queued:
        it is written even if the caller is cancelled. Raises UserError if it cannot be written.
        """
        row = row_of(request, outcome)
        self._log.append(row)
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._pending.append((row, written))
        under_way = self.leases.count if "leases" in self.__dict__ else 0
        if len(self._pending) >= under_way:  # nothing that would be worth waiting for
            self._begin_writing()
        elif self._gathering is None:
            self._gathering = loop.call_later(GATHER, self._begin_writing)
        await written

    def _begin_writing(self) -> None:
        """Commit what is pending, unless a commit is under way, which goes on with it."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        """Commit what is pending, all of it at once, and what became due in the meantime."""
        loop = asyncio.get_running_loop()
        while self._pending and self._gathering is None:
            batch, self._pending = self._pending, []
            rows, log = [row for row, _ in batch], self._log.rotate()
            error: UserError | None = None
            try:
                await loop.run_in_executor(self._thread, _insert, self._writer, rows)
                self._log.committed(log)
            except UserError as failure:
                error = failure
            except sqlite3.Error as failure:
                self._log.keep(log)
                error = explained(failure, self.path)
                error.__cause__ = failure
            for _, written in batch:
                if written.done():
                    continue
                if error is None:
                    written.set_result(None)
                else:
                    written.set_exception(error)

    async def close(self) -> None:
        """Write what is pending and close the file."""
        if self._pending:
            self._begin_writing()
        if self._writing is not None:
            await self._writing
        self._thread.shutdown()
        self._log.close()
        if "leases" in self.__dict__:
            self.leases.close()
        self._reader.close()
        self._writer.close()


def _insert(connection: sqlite3.Connection, rows: list[ReplyRow]) -> None:
    """Write rows, all or none; the last one of a request counts. Raises sqlite3.Error."""
    try:
        with _transaction(connection):
            for start in range(0, len(rows), ROWS_AT_ONCE):
                some = rows[start : start + ROWS_AT_ONCE]
                statement = INSERT + ", ".join([ROW] * len(some))
                connection.execute(statement, [*chain.from_iterable(some)])
    except sqlite3.IntegrityError:  # one of them was asked again
        with _transaction(connection):
            connection.executemany(REPLACE, rows)


def _recover(connection: sqlite3.Connection, rows: Sequence[ReplyRow]) -> None:
    """Take in rows of others, all or none; the later one of a request counts. Raises
    sqlite3.Error."""
    with _transaction(connection):
        connection.executemany(RECOVER, rows)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block writes, or nothing of it. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file is a cache before anything is written to it, then make it ready."""
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
