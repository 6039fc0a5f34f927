"""Cache of replies, keyed by the content of the request, in SQLite; claims on requests between
processes that share it; and the parameters that were really sent.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import JsonValue, ValidationError

from trajudge.judges.adapters.base import Adapter
from trajudge.judges.adapters.errors import ContextOverflow, Refused
from trajudge.judges.model import Reply, Request
from trajudge.trajectories.model import defaults_of
from trajudge.util.errors import UserError
from trajudge.util.files import check_regular, is_locked, lock, read_regular, remove

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


Outcome = Reply | Refused | ContextOverflow

"""What is worth keeping: asking again would cost the same money or fail the same way."""


class RequestKey(NamedTuple):
    """What identifies a request, and who was asked: all that is kept of it."""

    hash: str
    endpoint: str
    model: str


Row = tuple[bytes, str, str, str, str, float]
"""A row of the cache: request, outcome, body, endpoint, model, created."""


def _row(request: Request | RequestKey, outcome: Outcome) -> Row:
    """Encode an answer that came now."""
    kind, body = _encoded(outcome)
    key = bytes.fromhex(request.hash)
    return (key, kind, body, request.endpoint, request.model, time.time())


def _logged(content: bytes) -> Iterator[Row]:
    """Yield the rows of a log; the last one may have been torn by a kill."""
    for line in content.split(b"\n"):
        with suppress(ValueError, TypeError):
            key, kind, body, endpoint, model, created = orjson.loads(line)
            yield bytes.fromhex(key), kind, body, endpoint, model, float(created)


def _encoded(outcome: Outcome) -> tuple[str, str]:
    """Return the kind of an answer, and its body."""
    match outcome:
        case Reply():
            return "reply", _reply_body(outcome)
        case Refused():
            return "refused", str(outcome)
        case ContextOverflow():
            return "context_overflow", str(outcome)


_DEFAULTS = defaults_of(Reply)


def _reply_body(reply: Reply) -> str:
    """Encode a reply as JSON, without what has its default: what pydantic writes, in a fraction of
    the time."""
    usage = reply.usage and {name: count for name, count in vars(reply.usage).items() if count}
    fields = vars(reply) | {"usage": usage}
    try:
        given = {name: value for name, value in fields.items() if value != _DEFAULTS[name]}
        return orjson.dumps(given).decode()
    except orjson.JSONEncodeError:
        return reply.model_dump_json(exclude_defaults=True)


def _decoded(kind: str, body: str) -> Outcome:
    """Decode an answer. Raises sqlite3.DatabaseError, pydantic's ValidationError."""
    match kind:
        case "reply":
            return Reply.model_validate_json(body)
        case "refused":
            return Refused(body)
        case "context_overflow":
            return ContextOverflow(body)
        case _:
            raise sqlite3.DatabaseError(f"unknown outcome {kind!r}")


class SentCall(NamedTuple):
    """One kind of call. ``adapter`` is its name, None if the cache alone answered such calls."""

    model: str
    endpoint: str
    parameters: Mapping[str, JsonValue]
    adapter: str | None


class SentCalls:
    """Distinct kinds of calls of a run, in the order of their models and parameters."""

    def __init__(self) -> None:
        self.changes = 0
        self._calls: dict[tuple[str, str, bytes], SentCall] = {}
        self._last: tuple[str, bool, Mapping[str, JsonValue]] | None = None

    def note(
        self, adapter: Adapter, model: str, parameters: Mapping[str, JsonValue], *, cached: bool
    ) -> None:
        """Take in a reply's parameters; replies that report none are ignored."""
        # Nearly always the same as the last time: no need to look it up.
        if not parameters or (model, cached, parameters) == self._last:
            return
        self._last = model, cached, parameters
        key = (model, adapter.endpoint, orjson.dumps(parameters, option=orjson.OPT_SORT_KEYS))
        known = self._calls.get(key)
        if known is None or (known.adapter is None and not cached):
            name = None if cached else adapter.name
            self._calls[key] = SentCall(model, adapter.endpoint, parameters, name)
            self.changes += 1

    def __iter__(self) -> Iterator[SentCall]:
        return iter(self._calls[key] for key in sorted(self._calls))


GUARD = "guard"  # the file that is locked while claims of the dead change hands


class Claims:
    """Claims on requests, files in the folder at ``path``: each is a hard link to the file that its
    owner keeps locked, so that a claim ends with its process. Every method raises UserError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors():
            path.mkdir(exist_ok=True)
            self._folder = os.open(path, os.O_RDONLY)
            self._guard = os.open(path / GUARD, os.O_RDWR | os.O_CREAT, 0o644)
            with self._guarded():
                for left in [*path.iterdir()]:  # by dead owners
                    descriptor = None if left.name == GUARD else lock(left, create=False)
                    if descriptor is not None:
                        remove(left, descriptor)
            while (descriptor := lock(path / (name := _owner_name()))) is None:
                continue
        self._name, self._alive = name, descriptor
        self._mine = set[str]()

    @property
    def count(self) -> int:
        """How many claims this owner has."""
        return len(self._mine)

    def claim(self, request_hash: str) -> bool:
        """Claim a request; False if a living process has. Microseconds."""
        with self._errors():
            try:
                self._link(request_hash)
            except FileExistsError:
                if not self._take_over(request_hash):
                    return False
            self._mine.add(request_hash)
        return True

    def is_claimed(self, request_hash: str) -> bool:
        """Tell whether a living process has claimed the request."""
        with self._errors():
            return is_locked(self.path / request_hash)

    def release(self, request_hash: str) -> None:
        """End a claim, if it is this owner's."""
        if request_hash in self._mine:
            self._mine.discard(request_hash)
            with suppress(OSError):  # it ends with the process
                os.unlink(request_hash, dir_fd=self._folder)

    def close(self) -> None:
        """End all claims."""
        for request_hash in (*self._mine,):
            self.release(request_hash)
        with suppress(OSError):
            remove(self.path / self._name, self._alive)
        os.close(self._guard)
        os.close(self._folder)

    def _take_over(self, name: str) -> bool:
        """Claim in place of a dead owner; False if its owner lives, or gave it back just now."""
        with self._guarded():
            descriptor = lock(self.path / name, create=False)
            if descriptor is None:
                return False
            remove(self.path / name, descriptor)
            try:
                self._link(name)
            except FileExistsError:  # by one that found it free
                return False
        return True

    def _link(self, name: str) -> None:
        os.link(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Keep others from taking claims over in the meantime. Takes microseconds."""
        fcntl.flock(self._guard, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._guard, fcntl.LOCK_UN)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise explained(error, self.path) from error


def _owner_name() -> str:
    return f"{os.getpid()}-{secrets.token_hex(4)}.lock"


APPLICATION = 0x74726A63  # "trjc", in the file's header: whose file this is

VERSION = 1

CHECKPOINT = 1000  # answers between two checkpoints: these wait for the disk, in a thread

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


GATHER = 0.05  # seconds that an answer waits for others at most, while others are under way

LARGE = 2**20  # bytes of the log, which is then emptied

REPLACE = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)"

RECOVER = """
INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (request) DO UPDATE SET
    outcome = excluded.outcome, body = excluded.body, created = excluded.created
WHERE excluded.created > answers.created
"""


class Cache:
    """Answers in the file at ``path``, which is created if it is not there, and which several
    processes may share.

    An answer that was put outlives the process, whatever ends it; a power
    failure may cost those of the last moments, never the file. Raises UserError if the file is not
    a cache, is damaged, was written by a newer version, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._uncopied = 0  # answers since the last checkpoint
        self._pending: list[Row] = []
        self._commit: asyncio.Future[None] | None = None
        self._log: tuple[Path, int] | None = None  # made when it is first needed
        self._keeps_log = False  # after a commit that failed
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without a wait for the disk a commit takes less than a tenth of a millisecond.
            self._connection = connect(path, synchronous="NORMAL")
            _prepare(self._connection, path)
            self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        except (sqlite3.Error, OSError) as error:
            raise explained(error, path) from error
        self.recover()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache")

    def get(self, request_hash: str) -> Outcome | None:
        """Return the answer to this request, or None. Takes microseconds. Raises UserError."""
        try:
            row = self._connection.execute(
                "SELECT outcome, body FROM answers WHERE request = ?",
                (bytes.fromhex(request_hash),),
            ).fetchone()
            return None if row is None else _decoded(*row)
        except (sqlite3.Error, ValidationError) as error:
            raise explained(error, self.path) from error

    def created(self, request_hash: str) -> float:
        """Return when the answer was kept, in seconds since 1970; 0 without one. Raises
        UserError."""
        try:
            row = self._connection.execute(
                "SELECT created FROM answers WHERE request = ?", (bytes.fromhex(request_hash),)
            ).fetchone()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        return 0.0 if row is None else float(row[0])

    def put(self, request: Request | RequestKey, outcome: Outcome) -> None:
        """Keep an answer that came now; it replaces an earlier one. Raises UserError if it cannot
        be written."""
        self._write([_row(request, outcome)])

    async def put_soon(self, request: Request | RequestKey, outcome: Outcome) -> None:
        """Do what ``put`` does, in one commit with the answers that come in the next moment, if
        other requests are under way. Before the first suspension the answer is in the log, where a
        kill does not reach it."""
        loop, row = asyncio.get_running_loop(), _row(request, outcome)
        self._append_to_log(row)
        if self._commit is None or self._commit.done():
            self._commit = loop.create_future()
            loop.call_later(GATHER, self._write_pending)
        self._pending.append(row)
        if len(self._pending) >= self.claims.count:  # nothing that would be worth waiting for
            loop.call_soon(self._write_pending)
        await asyncio.shield(self._commit)

    def _write_pending(self) -> None:
        rows, self._pending, commit = self._pending, [], self._commit
        if not rows:  # written before, or when it was closed
            return
        error: UserError | None = None
        try:
            self._write(rows)
        except UserError as failure:
            self._keeps_log, error = True, failure
        if self._log and not self._keeps_log and os.fstat(self._log[1]).st_size > LARGE:
            os.ftruncate(self._log[1], 0)  # to read a row twice does no harm
        if commit is None or commit.done():
            return
        if error is None:
            commit.set_result(None)
        else:
            commit.set_exception(error)
            commit.exception()  # seen, also where whoever waited is cancelled

    def _append_to_log(self, row: Row) -> None:
        """Write a row where others find it if this process dies. A log that cannot be written is no
        reason to give up: the commit is what counts."""
        with suppress(OSError, orjson.JSONEncodeError):
            while self._log is None:
                path = self.path.with_name(f"{self.path.name}.log-{_owner_name()}")
                descriptor = lock(path)
                self._log = None if descriptor is None else (path, descriptor)
            # The line break before it ends what an earlier write may have left unfinished.
            os.write(self._log[1], b"\n" + orjson.dumps([row[0].hex(), *row[1:]]))

    def recover(self) -> None:
        """Take in what dead processes had received and not committed. Raises UserError."""
        try:
            for path in sorted(self.path.parent.glob(f"{self.path.name}.log-*")):
                descriptor = lock(path, create=False)
                if descriptor is None:
                    continue
                try:
                    self._write([*_logged(read_regular(path))], RECOVER)
                except UserError:
                    os.close(descriptor)
                    raise
                remove(path, descriptor)
        except OSError as error:
            raise explained(error, self.path) from error

    def _write(self, rows: Sequence[Row], statement: str = REPLACE) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, rows)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise explained(error, self.path) from error
        self._uncopied += len(rows)
        if self._uncopied >= CHECKPOINT:
            self._uncopied = 0
            self._thread.submit(_checkpoint, self.path)

    @cached_property
    def claims(self) -> Claims:
        """Claims on the requests that are under way. Raises UserError."""
        return Claims(self.path.with_name(self.path.name + ".claims"))

    def close(self) -> None:
        """Write what is pending and close the file."""
        self._write_pending()
        if self._log is not None and self._keeps_log:  # for whoever opens the cache next
            os.close(self._log[1])
        elif self._log is not None:
            remove(*self._log)
        self._thread.shutdown()
        if "claims" in self.__dict__:
            self.claims.close()
        self._connection.close()


def _checkpoint(path: Path) -> None:
    """Copy the log of commits into the file; one that fails is made up for by the next."""
    with suppress(sqlite3.Error, UserError):
        connection = connect(path, synchronous="NORMAL")
        connection.execute("PRAGMA wal_checkpoint")
        connection.close()


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
