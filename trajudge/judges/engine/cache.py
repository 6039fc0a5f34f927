"""Cache of replies, keyed by the content of the request, in SQLite: rows, the log that no kill can
lose, leases between processes, and the parameters that were really sent.
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
from enum import Enum
from functools import cached_property
from itertools import chain
from pathlib import Path
from threading import Event, Lock, Thread
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


LARGE = 2**20  # bytes

ReplyRow = tuple[bytes, str, str, str, str, float]

"""A row of the cache: request, outcome, body, endpoint, model, created."""


class ReplyLog:
    """Log of one process beside the cache at ``path``; its files are created when first needed.

    A log that cannot be written is no reason to give up: the commit is what counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[tuple[Path, int]] = []
        self._sizes = [0, 0]
        self._turn = 0
        self._kept = set[int]()  # files whose commit failed

    def append(self, row: ReplyRow) -> None:
        """Write one row; it has left this process when this returns."""
        try:
            if not self._files:
                self._files = [self._create(), self._create()]
            line = orjson.dumps([row[0].hex(), *row[1:]], option=orjson.OPT_APPEND_NEWLINE)
            # The line break before it ends what an earlier write may have left unfinished.
            self._sizes[self._turn] += os.write(self._files[self._turn][1], b"\n" + line)
        except (OSError, orjson.JSONEncodeError):
            return

    def rotate(self) -> int:
        """Begin the next file; return the number of the one that is to be committed now."""
        full, self._turn = self._turn, 1 - self._turn
        return full

    def committed(self, number: int) -> None:
        """Empty a file whose rows are all in the cache, once it is large: to take a row in twice
        does no harm, and to empty it after every commit takes longer than to write it."""
        if self._files and number not in self._kept and self._sizes[number] > LARGE:
            os.ftruncate(self._files[number][1], 0)
            self._sizes[number] = 0

    def keep(self, number: int) -> None:
        """Leave a file to whoever opens the cache next: its rows could not be committed."""
        self._kept.add(number)

    def close(self) -> None:
        """Remove the files, those apart that are to be kept."""
        for number, (path, descriptor) in enumerate(self._files):
            if number in self._kept:
                os.close(descriptor)
            else:
                remove(path, descriptor)
        self._files = []

    def _create(self) -> tuple[Path, int]:
        while True:
            name = f"{self._path.name}.log-{os.getpid()}-{secrets.token_hex(4)}"
            path = self._path.with_name(name)
            descriptor = lock(path)
            if descriptor is not None:
                return path, descriptor


@contextmanager
def left_behind(path: Path) -> Iterator[list[ReplyRow]]:
    """Yield the rows that dead processes logged for the cache at ``path``; their files are removed
    when the block ends without an error. Raises OSError."""
    found = [
        (log, descriptor)
        for log in sorted(path.parent.glob(f"{path.name}.log-*"))
        if (descriptor := lock(log, create=False)) is not None
    ]
    done = False
    try:
        yield [row for log, _ in found for row in _rows(read_regular(log))]
        done = True
    finally:
        for log, descriptor in found:
            if done:
                remove(log, descriptor)
            else:
                os.close(descriptor)


def _rows(content: bytes) -> Iterator[ReplyRow]:
    """Yield the complete lines: the last one may have been torn by a kill."""
    for line in content.split(b"\n"):
        try:
            key, outcome, body, endpoint, model, created = orjson.loads(line)
            yield bytes.fromhex(key), outcome, body, endpoint, model, float(created)
        except (ValueError, TypeError):
            continue


Outcome = Reply | Refused | ContextOverflow

"""What is worth keeping: asking again would cost the same money or fail the same way."""


class RequestKey(NamedTuple):
    """What identifies a request, and who was asked: all that is kept of it."""

    hash: str
    endpoint: str
    model: str


def row_of(request: Request | RequestKey, outcome: Outcome) -> ReplyRow:
    """Encode an answer that came now."""
    match outcome:
        case Reply():
            kind, body = "reply", _reply_body(outcome)
        case Refused():
            kind, body = "refused", str(outcome)
        case ContextOverflow():
            kind, body = "context_overflow", str(outcome)
    key = bytes.fromhex(request.hash)
    return (key, kind, body, request.endpoint, request.model, time.time())


_DEFAULTS = defaults_of(Reply)


def _reply_body(reply: Reply) -> str:
    """Encode a reply as JSON, without what has its default: what pydantic writes, in a fraction of
    the time."""
    usage = reply.usage and {name: count for name, count in vars(reply.usage).items() if count}
    fields = vars(reply) | {"usage": usage}
    try:
        told = {name: value for name, value in fields.items() if value != _DEFAULTS[name]}
        return orjson.dumps(told).decode()
    except orjson.JSONEncodeError:
        return reply.model_dump_json(exclude_defaults=True)


def outcome_of(kind: str, body: str) -> Outcome:
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


LEASE_SECONDS = 30.0

BEATS = 4  # heartbeats in the time of a lease

GUARD = "guard"  # the file that is locked while expired leases change hands


class Claim(Enum):
    """Outcome of a claim."""

    HELD = "another process works on it"
    OWN = "nobody did"
    TAKEN_OVER = "its owner died or fell silent"


class Leases:
    """Leases in the folder at ``path``, as one owner among those that share it.

    ``seconds`` is how long an owner may be silent. Raises UserError if the folder cannot be used.
    """

    def __init__(self, path: Path, seconds: float = LEASE_SECONDS) -> None:
        self.path = path
        self.seconds = seconds
        self._claimed = set[str]()
        self._closed = Event()
        self._turn = Lock()
        self._heart: Thread | None = None
        try:
            path.mkdir(exist_ok=True)
            self._folder = os.open(path, os.O_RDONLY)
            self._guard = os.open(path / GUARD, os.O_RDWR | os.O_CREAT, 0o644)
            self._clean_up()
            self._file_name, self._alive = self._sign_in()
            self._inode = os.fstat(self._alive).st_ino
            self._until = self._prolong()
        except OSError as error:
            raise explained(error, path) from error

    @property
    def count(self) -> int:
        """How many leases this owner has."""
        return len(self._claimed)

    def claim(self, key: bytes) -> Claim:
        """Take the lease on a key if nobody has it. Microseconds; raises UserError."""
        name = key.hex()
        try:
            if self._is_silent():
                self._beat()
            if self._link(name):
                self._keep_alive()
                return Claim.OWN
            if not self._is_held(name) and self._take_over(name):
                self._keep_alive()
                return Claim.TAKEN_OVER
        except OSError as error:
            raise explained(error, self.path) from error
        return Claim.HELD

    def is_held(self, key: bytes) -> bool:
        """Tell whether a living process has the lease. Raises UserError."""
        try:
            return self._is_held(key.hex())
        except OSError as error:
            raise explained(error, self.path) from error

    def release(self, key: bytes) -> None:
        """Give a lease back, if it is this owner's."""
        with suppress(OSError):  # ``close`` tries again
            if self._is_silent():
                # Another may have taken it over, and is not to lose it now.
                with self._guarded():
                    self._unlink(key.hex())
            elif (name := key.hex()) in self._claimed:  # nobody takes over from one that is heard
                os.unlink(name, dir_fd=self._folder)
                self._claimed.discard(name)

    def close(self) -> None:
        """Give all leases back."""
        self._closed.set()
        if self._heart is not None:
            self._heart.join()
        with suppress(OSError), self._guarded():
            for name in tuple(self._claimed):
                self._unlink(name)
        with suppress(OSError):
            remove(self.path / self._file_name, self._alive)
        os.close(self._guard)
        os.close(self._folder)

    def _clean_up(self) -> None:
        """Remove what dead owners left behind, their leases included."""
        with self._guarded():
            for path in tuple(self.path.iterdir()):
                descriptor = None if path.name == GUARD else lock(path, create=False)
                if descriptor is not None:
                    remove(path, descriptor)

    def _sign_in(self) -> tuple[str, int]:
        """Make the file that this owner keeps locked, and return its name and descriptor."""
        while True:
            name = f"{os.getpid()}-{secrets.token_hex(4)}.lock"
            descriptor = lock(self.path / name)
            if descriptor is not None:
                return name, descriptor

    def _link(self, name: str) -> bool:
        """Make the lease of that name this owner's; False if somebody has it."""
        with self._turn:
            try:
                self._link_as(name)
            except FileExistsError:
                return False
            self._claimed.add(name)
        return True

    def _unlink(self, name: str) -> None:
        """Remove the lease of that name, if it is this owner's."""
        if self._is_mine(name):
            os.unlink(name, dir_fd=self._folder)
        self._claimed.discard(name)

    def _is_mine(self, name: str) -> bool:
        with suppress(FileNotFoundError):
            return os.stat(name, dir_fd=self._folder).st_ino == self._inode
        return False

    def _is_held(self, name: str) -> bool:
        try:
            expires = os.stat(name, dir_fd=self._folder).st_mtime
        except FileNotFoundError:
            return False
        return expires > time.time() and is_locked(self.path / name)

    def _take_over(self, name: str) -> bool:
        """Put this owner in the place of a dead or silent one; False if another did, or if the
        lease is free."""
        with self._guarded():
            if self._is_held(name) or not (self.path / name).exists():
                return False
            mine = f"{name}-{self._file_name}"
            with suppress(FileExistsError):
                self._link_as(mine)
            os.replace(mine, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._claimed.add(name)
        return True

    def _link_as(self, name: str) -> None:
        folder = self._folder
        os.link(self._file_name, name, src_dir_fd=folder, dst_dir_fd=folder)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Keep others from taking a lease over in the meantime. Takes microseconds."""
        with self._turn:
            fcntl.flock(self._guard, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._guard, fcntl.LOCK_UN)

    def _is_silent(self) -> bool:
        """Tell whether the leases expire before long, or did: heartbeats are missing."""
        return time.time() > self._until - self.seconds / BEATS

    def _keep_alive(self) -> None:
        if self._heart is None:
            self._heart = Thread(target=self._beats, name="leases", daemon=True)
            self._heart.start()

    def _beats(self) -> None:
        """Prolong the leases in a thread: the event loop may be busy for long."""
        while not self._closed.wait(self.seconds / BEATS):
            with suppress(OSError):  # the next beat may succeed; until then nothing is lost
                self._beat()

    def _beat(self) -> None:
        """Prolong the leases. After a silence, those that others have taken over are given up
        before this owner counts as heard: ``release`` then trusts that its leases are its own."""
        end = self._until
        until = self._prolong()
        if time.time() <= end:
            self._until = until
            return
        with self._guarded():
            for name in tuple(self._claimed):
                if not self._is_mine(name):
                    self._claimed.discard(name)
            self._until = self._prolong()

    def _prolong(self) -> float:
        """Set the end of all leases of this owner, and return it."""
        until = time.time() + self.seconds
        os.utime(self._alive, (until, until))
        return until


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

    async def put(self, request: Request | RequestKey, outcome: Outcome) -> None:
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
