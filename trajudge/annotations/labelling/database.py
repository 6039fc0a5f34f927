"""The SQLite file of a queue: its tables, its connections, and one writing transaction at a time.

Every writing transaction begins with BEGIN IMMEDIATE: one that reads first and writes later fails
at once when another wrote in between, whatever the timeout. ``synchronous=FULL`` makes a commit
outlast the machine's power.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import orjson

from trajudge.annotations.labelling.records import (
    EventKind,
    FormAnswers,
    LabelEvent,
    QueueItem,
    QueueSettings,
    StoredItem,
)
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import check_regular, make_folder

FILE = "labels.sqlite"
VERSION = 1
BUSY_MILLISECONDS = 5_000
PATIENCE = 60.0
"""Seconds that a writer waits for others, in turns of ``BUSY_MILLISECONDS``."""

_SCHEMA = """
CREATE TABLE queue (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE person (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('annotator', 'adjudicator', 'viewer')),
    token_hash TEXT, active INTEGER NOT NULL DEFAULT 1);
CREATE TABLE item (
    id INTEGER PRIMARY KEY, benchmark TEXT NOT NULL, agent TEXT NOT NULL, task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL, content TEXT NOT NULL, stratum TEXT NOT NULL,
    inclusion_probability REAL CHECK (inclusion_probability > 0 AND inclusion_probability <= 1),
    position INTEGER NOT NULL, wanted INTEGER NOT NULL CHECK (wanted > 0),
    is_gold INTEGER NOT NULL, UNIQUE (benchmark, agent, task_id, attempt));
CREATE INDEX item_position ON item (position, id);
CREATE TABLE lease (
    item INTEGER NOT NULL REFERENCES item, person INTEGER NOT NULL REFERENCES person,
    expires INTEGER NOT NULL, PRIMARY KEY (item, person)) WITHOUT ROWID;
CREATE TABLE event (
    id INTEGER PRIMARY KEY, at INTEGER NOT NULL, person INTEGER REFERENCES person,
    item INTEGER REFERENCES item, kind TEXT NOT NULL, payload TEXT NOT NULL, request TEXT UNIQUE);
CREATE INDEX event_reading ON event (item, person, kind, id);
CREATE INDEX event_person ON event (person, id);
CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
    BEGIN SELECT RAISE(ABORT, 'events are only appended'); END;
CREATE TRIGGER event_is_never_deleted BEFORE DELETE ON event
    BEGIN SELECT RAISE(ABORT, 'events are only appended'); END;
CREATE VIEW current_label AS SELECT * FROM event AS latest WHERE kind = 'submitted' AND id = (
    SELECT max(id) FROM event AS other
    WHERE other.item = latest.item AND other.person = latest.person AND other.kind = 'submitted');
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection in autocommit, for the thread that holds it at the time. Raises
    UnsafeFile."""
    check_regular(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def create_queue(folder: Path, settings: QueueSettings, items: Sequence[QueueItem]) -> None:
    """Write a queue into a folder. Raises UserError where there is one, or an item stands twice."""
    path = folder / FILE
    if path.exists():
        raise UserError(f"{folder}: holds a queue already: name another folder in --out")
    keys = [item.key for item in items]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UserError(f"{folder}: the trajectory {twice} stands twice in the queue")
    make_folder(folder, "--out")
    building = folder / f".{FILE}.new"
    building.unlink(missing_ok=True)
    connection = sqlite3.connect(building, isolation_level=None)
    connection.executescript(_SCHEMA)
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO queue VALUES (?, ?)",
        [("version", str(VERSION)), ("settings", settings.model_dump_json())],
    )
    connection.executemany(
        "INSERT INTO item (benchmark, agent, task_id, attempt, content, stratum,"
        " inclusion_probability, position, wanted, is_gold) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *item.key.order,
                item.model_dump_json(),
                item.stratum,
                item.inclusion_probability,
                item.position,
                item.wanted,
                item.gold is not None,
            )
            for item in items
        ],
    )
    connection.execute("COMMIT")
    connection.close()
    building.rename(path)


class LabelStore:
    """An open queue: one writer behind a lock, a reader for each thread.

    ``clock`` gives seconds since 1970. Raises UserError for a folder that holds no queue.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._path = folder / FILE
        self._clock = clock
        if not self._path.is_file():
            raise UserError(
                f"{folder}: holds no queue ({FILE} is missing): make one with"
                f"  trajudge label build --out {folder}"
            )
        self._lock = threading.Lock()
        self._readers = threading.local()
        try:
            self._writer = connect(self._path)
            rows = dict(self._writer.execute("SELECT name, value FROM queue").fetchall())
        except sqlite3.Error as error:
            raise UserError(f"{self._path}: cannot be read as a queue ({error})") from error
        if rows.get("version") != str(VERSION):
            raise UserError(
                f"{self._path}: is of version {rows.get('version')}, and this trajudge reads "
                f"version {VERSION}: upgrade trajudge"
            )
        self.settings = QueueSettings.model_validate_json(rows["settings"])

    def now(self) -> int:
        """Return the time in milliseconds since 1970."""
        return round(self._clock() * 1000)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the queue's one writing transaction; it is committed when the block ends, and then
        outlasts any failure. Raises sqlite3.OperationalError after ``PATIENCE``."""
        with self._lock:
            _begin(self._writer)
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    def reading(self) -> sqlite3.Connection:
        """Return this thread's connection for reading."""
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = connect(self._path)
            connection.execute("PRAGMA query_only = ON")
        return connection

    def items(self) -> list[StoredItem]:
        """List all items by their position."""
        rows = self.reading().execute("SELECT id, content FROM item ORDER BY position, id")
        return [StoredItem(row["id"], _item_of(row)) for row in rows]

    def item(self, item: int) -> QueueItem | None:
        """Return an item by its number."""
        row = self.reading().execute("SELECT content FROM item WHERE id = ?", (item,)).fetchone()
        return None if row is None else _item_of(row)

    def number_of(self, key: TrajectoryKey) -> int | None:
        """Return the number of a trajectory's item."""
        row = self.reading().execute(
            "SELECT id FROM item WHERE benchmark = ? AND agent = ? AND task_id = ? AND attempt = ?",
            key.order,
        )
        present = row.fetchone()
        return None if present is None else int(present["id"])

    def close(self) -> None:
        """Close the writer and this thread's reader."""
        with self._lock:
            self._writer.close()
        connection = getattr(self._readers, "connection", None)
        if connection is not None:
            connection.close()


def append_event(
    connection: sqlite3.Connection,
    at: int,
    kind: EventKind,
    payload: Mapping[str, Any],
    *,
    person: int | None = None,
    item: int | None = None,
    request: str | None = None,
) -> int:
    """Append an event within a writing transaction; return its number."""
    text = orjson.dumps(dict(payload), option=orjson.OPT_SORT_KEYS).decode()
    cursor = connection.execute(
        "INSERT INTO event (at, person, item, kind, payload, request) VALUES (?, ?, ?, ?, ?, ?)",
        (at, person, item, kind.value, text, request),
    )
    return int(cursor.lastrowid or 0)


def read_events(connection: sqlite3.Connection) -> Iterator[LabelEvent]:
    """Yield all events in their order."""
    columns = ", ".join(LabelEvent._fields)
    for row in connection.execute(f"SELECT {columns} FROM event ORDER BY id"):  # noqa: S608 - a constant
        yield LabelEvent(*row)


def answered_events(
    connection: sqlite3.Connection, kind: Literal[EventKind.ADJUDICATED, EventKind.REVISED]
) -> Iterator[tuple[sqlite3.Row, FormAnswers, dict[str, Any]]]:
    """Yield the events that hold answers beside something else, the earliest first: the row, its
    answers and its whole payload."""
    rows = connection.execute("SELECT * FROM event WHERE kind = ? ORDER BY id", (kind,))
    for row in rows:
        payload = orjson.loads(row["payload"])
        yield row, FormAnswers.model_validate(payload["answers"]), payload


def _begin(connection: sqlite3.Connection) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return


def _item_of(row: sqlite3.Row) -> QueueItem:
    return QueueItem.model_validate_json(row["content"])
