"""A queue of trajectories to label: one SQLite file with people, items, leases and events.

Events are only ever appended; the current state is derived from them. Several people and processes
may write concurrently: every writing transaction begins with BEGIN IMMEDIATE (a transaction that
reads first and writes later fails at once if another wrote in between, whatever the timeout), and
with ``synchronous=FULL`` a commit survives a power failure.

A person is offered a new item once. An item that they opened remains theirs to finish, also after
their lease expires, while it still needs a label; one that they submitted, skipped or released is
not offered again, unless the adjudicator sends it back. First labels are collected before second
ones. A submission has a request key, so that repeating it creates one event; each write names the
version on which it is based, so that two open pages do not overwrite each other.
"""

from __future__ import annotations

import hmac
import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import scrypt
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field, model_validator

from trajudge.annotations.model import EvidenceMark, SampleFrame
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import check_regular, make_folder

FILE = "labels.sqlite"
VERSION = 1
LEASE_MILLISECONDS = 30 * 60 * 1000
REOPEN_MILLISECONDS = 5 * 60 * 1000
BUSY_MILLISECONDS = 5_000
PATIENCE = 60.0
"""Seconds that a writer waits for others, in turns of ``BUSY_MILLISECONDS``."""
TEXT_LIMIT = 20_000
"""Characters of a comment, a reason or a note."""
NAME_LIMIT = 100

Choice = Literal["yes", "no", "unsure"]
Question = Literal["success", "side_effect", "repetition", "optimality"]
QUESTIONS: tuple[Question, ...] = ("success", "side_effect", "repetition", "optimality")
Role = Literal["annotator", "adjudicator", "viewer"]
Stage = Literal["blind", "informed"]
Layout = Literal["trajudge", "agentrewardbench", "label-studio", "argilla"]
"""``blind``: before the verdicts were shown. A layout is what labels are exported as."""
# fmt: off
EventKind = Literal[
    "opened", "draft", "submitted", "verdicts_shown", "revised", "skipped", "released", "reopened",
    "returned", "adjudicated", "guideline_shown", "reviewed",
]
# fmt: on
"""``draft`` is what a form held, ``revised`` the second stage after the verdicts were shown,
``returned`` an item that the adjudicator sent back, ``reviewed`` a decision about a rule."""

_SCRYPT_COST = 2**14
_NOT_YOURS = "This item is not yours to label any more: it was finished or given to others."
_SCHEMA = """
CREATE TABLE queue (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE person (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('annotator', 'adjudicator', 'viewer')),
    token_hash TEXT NOT NULL);
CREATE TABLE item (
    id INTEGER PRIMARY KEY, benchmark TEXT NOT NULL, agent TEXT NOT NULL, task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL, content TEXT NOT NULL, position INTEGER NOT NULL,
    wanted INTEGER NOT NULL CHECK (wanted > 0), is_gold INTEGER NOT NULL,
    UNIQUE (benchmark, agent, task_id, attempt));
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
# Conditions on an item, a person and the time.
_CLOSED = (
    "EXISTS (SELECT 1 FROM event WHERE event.item = item.id AND event.person = :person"
    " AND event.kind IN ('submitted', 'skipped', 'released'))"
)
# People who submitted, and others who hold a lease and did not.
_TAKEN = (
    "((SELECT count(DISTINCT event.person) FROM event"
    " WHERE event.item = item.id AND event.kind = 'submitted')"
    " + (SELECT count(*) FROM lease WHERE lease.item = item.id AND lease.person != :person"
    " AND lease.expires > :now AND NOT EXISTS (SELECT 1 FROM event WHERE event.item = item.id"
    " AND event.person = lease.person AND event.kind = 'submitted')))"
)
_LAST = "(SELECT max(id) FROM event WHERE event.item = item.id AND event.person = :person AND kind"


class FormAnswers(Record):
    """The answers of a form; None: not answered yet. ``seconds`` is how long the page was
    visible."""

    success: Choice | None = None
    side_effect: Choice | None = None
    repetition: Choice | None = None
    optimality: Literal[1, 2, 3, 4, "unsure"] | None = None
    unsure_why: dict[Question, str] = Field(default_factory=dict)
    evidence: tuple[EvidenceMark, ...] = Field(default=(), max_length=200)
    comment: str = Field(default="", max_length=TEXT_LIMIT)
    confidence: int | None = Field(default=None, ge=1, le=3)
    seconds: float | None = Field(default=None, ge=0)
    guideline_version: str | None = None

    @model_validator(mode="after")
    def _bounded(self) -> FormAnswers:
        notes = [*self.unsure_why.values(), *(mark.note for mark in self.evidence)]
        if any(len(note) > TEXT_LIMIT for note in notes):
            raise ValueError(f"a note is longer than {TEXT_LIMIT:,} characters")
        return self

    def value(self, question: Question) -> str:
        """Return the answer as text, "" without one."""
        answer = getattr(self, question)
        return "" if answer is None else str(answer)

    @property
    def payload(self) -> dict[str, Any]:
        """The answers in the form of an event."""
        return self.model_dump(mode="json", exclude_defaults=True)


class QueueItem(Record):
    """A trajectory to label; ``wanted`` is the number of independent labels.

    ``inclusion_probability`` is that of the draw, None for a hidden check (``gold`` has its known
    labels), which estimates exclude. ``position`` is the position in the queue.
    """

    key: TrajectoryKey
    raw_task_id: str
    stratum: str = ""
    inclusion_probability: float | None = Field(default=None, gt=0, le=1)
    reason: str = ""
    position: int = Field(default=0, ge=0)
    wanted: int = Field(default=1, ge=1)
    gold: dict[Question, Any] | None = None


class QueueSettings(Record):
    """How a queue was built and its questions; ``frame`` describes the population."""

    strategy: str = "random"
    seed: int = 0
    questions: tuple[Question, ...] = QUESTIONS
    informed: bool = False
    data: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    annotations: str | None = None
    frame: SampleFrame | None = None


@dataclass(frozen=True)
class Person:
    """An annotator."""

    id: int
    name: str
    role: Role
    token_hash: str


@dataclass(frozen=True)
class Offer:
    """An item that a person may label; ``returned`` is the adjudicator's reason for sending it
    back, or ""."""

    item: int
    returned: str = ""


@dataclass(frozen=True)
class Progress:
    """The progress of a queue: needed and submitted labels, complete items, and a person's
    submissions and skips."""

    wanted: int
    submitted: int
    items: int
    complete: int
    own_submitted: int
    own_skipped: int


@dataclass(frozen=True)
class OwnReading:
    """The last state of a person's form: its version (0: nothing yet), answers, and whether it
    is submitted. ``shown``: the verdicts were shown to them; ``revised``: they answered
    afterwards."""

    version: int
    answers: FormAnswers
    submitted: bool
    shown: bool
    revised: bool


@dataclass(frozen=True)
class SubmittedReading:
    """A submitted label, or a decision with a ``reason``; ``at`` is in milliseconds since 1970."""

    person: int
    answers: FormAnswers
    at: int
    reason: str = ""


@dataclass(frozen=True)
class Dispute:
    """An item to adjudicate: its readings, in an order that does not reveal their authors, and
    the questions on which they differ or are unsure."""

    item: int
    readings: tuple[SubmittedReading, ...]
    questions: tuple[Question, ...]
    returned: bool


class LabelRefused(Exception):
    """The queue rejects a write; the message is a sentence for the annotator."""


class LabelConflict(LabelRefused):
    """Another page changed the reading; ``version`` and ``answers`` are the current ones."""

    def __init__(self, version: int, answers: FormAnswers) -> None:
        super().__init__(
            "This item was changed in another window: reload to see the current version."
        )
        self.version = version
        self.answers = answers


def create_queue(folder: Path, settings: QueueSettings, items: Sequence[QueueItem]) -> None:
    """Write a queue into a folder. Raises UserError if there is one, or for a repeated item."""
    path = folder / FILE
    if path.exists():
        raise UserError(f"{folder}: holds a queue already: name another folder in --out")
    keys = [item.key for item in items]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UserError(f"{folder}: the trajectory {twice} is in the queue twice")
    make_folder(folder, "--out")
    building = folder / f".{FILE}.new"
    building.unlink(missing_ok=True)
    connection = sqlite3.connect(building, isolation_level=None)
    connection.executescript(_SCHEMA)
    connection.execute("BEGIN")
    meta = [("version", str(VERSION)), ("settings", settings.model_dump_json())]
    connection.executemany("INSERT INTO queue VALUES (?, ?)", meta)
    connection.executemany(
        "INSERT INTO item (benchmark, agent, task_id, attempt, content, position, wanted, is_gold)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *item.key.order,
                item.model_dump_json(),
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


def cleaned(text: str) -> str:
    """Return a text of at most ``TEXT_LIMIT`` characters without lone surrogates. Raises
    LabelRefused for a longer one."""
    if len(text) > TEXT_LIMIT:
        raise LabelRefused(f"Not saved: a text is longer than {TEXT_LIMIT:,} characters.")
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


class LabelQueue:
    """An open queue: one writer behind a lock, a reader for each thread.

    People and items are identified by number. ``clock`` returns seconds since 1970. Raises
    UserError for a folder without a queue.
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
            self._writer = _connect(self._path)
            rows = dict(self._writer.execute("SELECT name, value FROM queue").fetchall())
        except sqlite3.Error as error:
            raise UserError(f"{self._path}: cannot be read as a queue ({error})") from error
        if rows.get("version") != str(VERSION):
            raise UserError(
                f"{self._path}: is of version {rows.get('version')}, and this trajudge reads "
                f"version {VERSION}: upgrade trajudge"
            )
        self.settings = QueueSettings.model_validate_json(rows["settings"])

    def close(self) -> None:
        """Close the writer and this thread's reader."""
        with self._lock:
            self._writer.close()
        connection = getattr(self._readers, "connection", None)
        if connection is not None:
            connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the queue's only write transaction, which is committed durably at the end of the
        block. Raises sqlite3.OperationalError after ``PATIENCE``."""
        with self._lock:
            _begin(self._writer)
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    def _reading(self) -> sqlite3.Connection:
        """Return this thread's connection for reading."""
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = _connect(self._path)
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _now(self) -> int:
        return round(self._clock() * 1000)

    # Items, people, events.

    def items(self) -> list[tuple[int, QueueItem]]:
        """List all items with their numbers, by their position."""
        rows = self._reading().execute("SELECT id, content FROM item ORDER BY position, id")
        return [(row["id"], QueueItem.model_validate_json(row["content"])) for row in rows]

    def item(self, number: int) -> QueueItem | None:
        """Return an item by its number."""
        rows = self._reading().execute("SELECT content FROM item WHERE id = ?", (number,))
        row = rows.fetchone()
        return None if row is None else QueueItem.model_validate_json(row["content"])

    def number_of(self, key: TrajectoryKey) -> int | None:
        """Return the number of a trajectory's item."""
        row = self._reading().execute(
            "SELECT id FROM item WHERE benchmark = ? AND agent = ? AND task_id = ? AND attempt = ?",
            key.order,
        )
        present = row.fetchone()
        return None if present is None else int(present["id"])

    def people(self) -> list[Person]:
        """List all people, in the order in which they were added."""
        rows = self._reading().execute("SELECT * FROM person ORDER BY id")
        return [Person(row["id"], row["name"], row["role"], row["token_hash"]) for row in rows]

    def person(self, who: int | str) -> Person | None:
        """Return a person by their number or name."""
        return next((p for p in self.people() if who in (p.id, p.name)), None)

    def person_by_token(self, token: str) -> Person | None:
        """Return the person with this token. Every stored hash is compared, and each
        comparison is slow by design, so that callers should cache the result for a session."""
        for person in self.people():
            salt = bytes.fromhex(person.token_hash.partition("$")[0])
            if hmac.compare_digest(_hash_of(token, salt), person.token_hash):
                return person
        return None

    def add_person(self, name: str, role: Role = "annotator") -> tuple[Person, str]:
        """Add a person; return them and their token, of which only the scrypt hash is stored.
        Raises UserError for an existing or empty name."""
        (added,) = self.add_people([name], role)
        return added

    def add_people(
        self, names: Sequence[str], role: Role = "annotator"
    ) -> list[tuple[Person, str]]:
        """Add people, all or none; return them and their tokens. Raises as ``add_person``."""
        names = [name.strip() for name in names]
        for name in names:
            if not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
                raise UserError(
                    f"the name {name!r} is not usable: give 1 to {NAME_LIMIT} printable characters"
                )
        tokens = [secrets.token_urlsafe(24) for _ in names]
        hashes = [_hash_of(token, secrets.token_bytes(16)) for token in tokens]
        added = []
        with self._writing() as connection:
            for name, token, hashed in zip(names, tokens, hashes, strict=True):
                try:
                    cursor = connection.execute(
                        "INSERT INTO person (name, role, token_hash) VALUES (?, ?, ?)",
                        (name, role, hashed),
                    )
                except sqlite3.IntegrityError:
                    raise UserError(f"{self.folder}: there is a person {name!r} already") from None
                number = int(cursor.lastrowid or 0)
                added.append((Person(number, name, role, hashed), token))
        return added

    def events(self, kind: EventKind | None = None) -> Iterator[dict[str, Any]]:
        """Yield all events (of a kind) in order: ``id``, ``at`` in milliseconds since 1970,
        ``person`` and ``item`` (numbers), ``kind``, ``payload`` (JSON text), ``request``."""
        where = "" if kind is None else "WHERE kind = :kind"
        rows = self._reading().execute(f"SELECT * FROM event {where} ORDER BY id", {"kind": kind})  # noqa: S608 - a constant
        yield from map(dict, rows)

    def record(
        self, kind: EventKind, payload: Mapping[str, Any], *, person: int, item: int
    ) -> None:
        """Append an event that changes no label."""
        with self._writing():
            self._append(kind, payload, person, item)

    def _append(
        self,
        kind: EventKind,
        payload: Mapping[str, Any],
        person: int,
        item: int | None,
        request: str | None = None,
    ) -> int:
        """Append an event within the writing transaction; return its number."""
        text = orjson.dumps(dict(payload), option=orjson.OPT_SORT_KEYS).decode()
        cursor = self._writer.execute(
            "INSERT INTO event (at, person, item, kind, payload, request)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (self._now(), person, item, kind, text, request),
        )
        return int(cursor.lastrowid or 0)

    # Offers.

    def claim_next(self, person: int) -> Offer | None:
        """Lease the person's next item: one sent back to them, their open one, or a new one;
        None if none is left for them."""
        place = {"person": person, "now": self._now()}
        with self._writing() as connection:
            item = _first(connection, _RETURNED, place) or _first(connection, _OPEN, place)
            if item is None:
                most = connection.execute("SELECT max(wanted) AS most FROM item").fetchone()["most"]
                turns = (
                    _first(connection, _NEW, {**place, "taken": taken})
                    for taken in range(most or 0)
                )
                item = next((number for number in turns if number is not None), None)
                if item is None:
                    return None
                self._append("opened", {}, person, item)
            self._lease(person, item)
            return Offer(item, _History(connection, item).returned_reason())

    def renew(self, person: int, item: int) -> bool:
        """Renew a person's lease, or acquire it again while the item still needs a label; return
        True if they hold it now."""
        with self._writing() as connection:
            if not self._may_label(connection, person, item):
                return False
            self._lease(person, item)
            return True

    def may_label(self, person: int, item: int) -> bool:
        """Return True if a person may write their reading of an item now: they opened it, did
        not close it, and at most the needed number of people hold or labelled it."""
        return self._may_label(self._reading(), person, item)

    def returned_reason(self, item: int) -> str:
        """Return the adjudicator's last reason for sending an item back, or ""."""
        return _History(self._reading(), item).returned_reason()

    def progress(self, person: int | None = None) -> Progress:
        """Count the finished work, of all and of one person."""
        row = self._reading().execute(
            "SELECT coalesce(sum(wanted), 0), coalesce(sum(labels), 0), count(*),"
            " coalesce(sum(labels >= wanted), 0) FROM (SELECT item.wanted, (SELECT"
            " count(DISTINCT person) FROM event WHERE event.item = item.id AND kind = 'submitted')"
            " AS labels FROM item)"
        )
        own = self._reading().execute(
            "SELECT count(DISTINCT item) FILTER (WHERE kind = 'submitted'),"
            " count(DISTINCT item) FILTER (WHERE kind = 'skipped') FROM event WHERE person = ?",
            (person,),
        )
        return Progress(*row.fetchone(), *own.fetchone())

    def _lease(self, person: int, item: int) -> None:
        lease = (item, person, self._now() + LEASE_MILLISECONDS)
        self._writer.execute("INSERT OR REPLACE INTO lease VALUES (?, ?, ?)", lease)

    def _may_label(self, connection: sqlite3.Connection, person: int, item: int) -> bool:
        history = _History(connection, item)
        if history.last(person, "submitted"):
            return history.is_reopened(person)
        if not history.last(person, "opened") or history.last(person, "skipped", "released"):
            return False
        row = connection.execute(
            f"SELECT {_TAKEN} < item.wanted AS free FROM item WHERE id = :item",  # noqa: S608 - constants
            {"person": person, "now": self._now(), "item": item},
        ).fetchone()
        return bool(row["free"])

    # Labels.

    def own_reading(self, person: int, item: int) -> OwnReading:
        """Return the current state of a person's reading of an item."""
        return _History(self._reading(), item).reading(person)

    def save_draft(self, person: int, item: int, answers: FormAnswers, version: int) -> int:
        """Store a form's answers and renew the lease; return the new version.

        Raises LabelConflict if ``version`` is not the current one, LabelRefused if the person may
        not label the item now.
        """
        with self._writing() as connection:
            standing = self._checked(connection, person, item, version)
            self._lease(person, item)
            if standing.version and standing.answers == answers:
                return standing.version
            return self._append("draft", answers.payload, person, item)

    def submit(
        self, person: int, item: int, answers: FormAnswers, version: int, request: str
    ) -> int:
        """Submit a reading; return its version. Repeating a ``request`` returns the same version.

        The submission is durable on return. Raises LabelRefused for an unanswered question or an
        item that the person may not label, LabelConflict as ``save_draft``.
        """
        with self._once(request, person, item) as (connection, key, earlier):
            if earlier is not None:
                return earlier
            self._checked(connection, person, item, version)
            if missing := self._unanswered(answers):
                names = ", ".join(question.replace("_", " ") for question in missing)
                raise LabelRefused(f"Not submitted: {names} not answered yet.")
            connection.execute("DELETE FROM lease WHERE item = ? AND person = ?", (item, person))
            return self._append("submitted", answers.payload, person, item, key)

    def give_up(
        self,
        kind: Literal["skipped", "released"],
        person: int,
        item: int,
        reason: str,
        request: str,
    ) -> None:
        """Skip an item permanently, or release it; others may label it. Raises LabelRefused
        without a reason, and if the person does not hold the item."""
        reason = cleaned(reason).strip()
        if not reason:
            raise LabelRefused("Not skipped: say why, in a few words.")
        with self._once(request, person, item) as (connection, key, earlier):
            if earlier is not None:
                return
            standing = _History(connection, item).reading(person)
            if not self._may_label(connection, person, item) or standing.submitted:
                raise LabelRefused(_NOT_YOURS)
            connection.execute("DELETE FROM lease WHERE item = ? AND person = ?", (item, person))
            self._append(kind, {"reason": reason}, person, item, key)

    def reopen(self, person: int) -> int | None:
        """Reopen the person's last submission if it is less than five minutes old; return the
        item. None if there is none, and after its verdicts were shown or it was adjudicated,
        because a blind label is then final."""
        with self._writing() as connection:
            last = connection.execute(
                "SELECT item, at FROM event WHERE person = ? AND kind = 'submitted'"
                " ORDER BY id DESC LIMIT 1",
                (person,),
            ).fetchone()
            if last is None or self._now() - last["at"] >= REOPEN_MILLISECONDS:
                return None
            item = int(last["item"])
            history = _History(connection, item)
            if history.last(None, "adjudicated") or history.last(person, "verdicts_shown"):
                return None
            if not history.is_reopened(person):
                self._append("reopened", {}, person, item)
            self._lease(person, item)
            return item

    def show_verdicts(self, person: int, item: int, seen: Sequence[str]) -> None:
        """Record, once, that the verdicts on an item are shown to a person from now on.

        Raises LabelRefused before the blind label was submitted, or in a queue without this stage.
        """
        with self._writing() as connection:
            standing = _History(connection, item).reading(person)
            if not self.settings.informed or not standing.submitted:
                raise LabelRefused("The verdicts are shown only after a submission.")
            if not standing.shown:
                self._append("verdicts_shown", {"seen": [*seen]}, person, item)

    def revise(self, person: int, item: int, answers: FormAnswers | None, request: str) -> int:
        """Record the second stage, once: other answers, or None to keep those of the first
        stage. It never replaces the blind label. Raises LabelRefused if no verdict was shown."""
        with self._once(request, person, item) as (connection, key, earlier):
            if earlier is not None:
                return earlier
            history = _History(connection, item)
            shown = history.last(person, "verdicts_shown")
            if shown is None or history.last(person, "revised"):
                raise LabelRefused(
                    "The second stage is answered once, after the verdicts were shown."
                )
            standing = history.reading(person).answers
            payload = {
                "kept": answers is None or answers == standing,
                "seen": orjson.loads(shown["payload"])["seen"],
                "answers": (answers or standing).payload,
            }
            return self._append("revised", payload, person, item, key)

    def guideline_shown(self, person: int, version: str) -> None:
        """Record which version of the guidelines was shown to a person, once for each."""
        with self._writing() as connection:
            before = connection.execute(
                "SELECT 1 FROM event WHERE person = ? AND kind = 'guideline_shown'"
                " AND json_extract(payload, '$.version') = ? LIMIT 1",
                (person, version),
            ).fetchone()
            if before is None:
                self._append("guideline_shown", {"version": version}, person, None)

    def import_label(self, person: int, item: int, answers: FormAnswers, request: str) -> bool:
        """Add a label from a file; return False for a person who labelled the item already, and
        for an item with all its labels."""
        with self._writing() as connection:
            history = _History(connection, item)
            if history.last(person, "submitted") or history.is_complete():
                return False
            self._append("submitted", answers.payload, person, item, request)
            return True

    @contextmanager
    def _once(
        self, request: str, person: int, item: int
    ) -> Iterator[tuple[sqlite3.Connection, str, int | None]]:
        """Open the transaction of a request: its connection, its key, which is bound to the
        sender, and the event that it already wrote, if any."""
        key = f"{person}/{item}/{cleaned(request)}"
        with self._writing() as connection:
            row = connection.execute("SELECT id FROM event WHERE request = ?", (key,)).fetchone()
            yield connection, key, None if row is None else int(row["id"])

    def _checked(
        self, connection: sqlite3.Connection, person: int, item: int, version: int
    ) -> OwnReading:
        standing = _History(connection, item).reading(person)
        if not self._may_label(connection, person, item):
            raise LabelRefused(_NOT_YOURS)
        if standing.version != version:
            raise LabelConflict(standing.version, standing.answers)
        return standing

    def _unanswered(self, answers: FormAnswers) -> list[Question]:
        return [question for question in self.settings.questions if not answers.value(question)]

    # Adjudication: an adjudicator sees the readings without names, in an order of the item's own.
    # Nobody adjudicates what they labelled or opened themselves.

    def readings(self) -> dict[int, list[SubmittedReading]]:
        """Return the submitted readings of every item, in the order of their first submission."""
        rows = self._reading().execute(
            "SELECT current_label.*, (SELECT min(id) FROM event AS other WHERE other.item ="
            " current_label.item AND other.person = current_label.person"
            " AND other.kind = 'submitted') AS first FROM current_label ORDER BY item, first"
        )
        grouped: dict[int, list[SubmittedReading]] = {}
        for row in rows:
            answers = FormAnswers.model_validate_json(row["payload"])
            reading = SubmittedReading(row["person"], answers, row["at"])
            grouped.setdefault(row["item"], []).append(reading)
        return grouped

    def decisions(self) -> dict[int, SubmittedReading]:
        """Return the last decision on every adjudicated item."""
        decided = {}
        for event in self.events("adjudicated"):
            payload = orjson.loads(event["payload"])
            answers = FormAnswers.model_validate(payload["answers"])
            decided[event["item"]] = SubmittedReading(
                event["person"], answers, event["at"], payload["reason"]
            )
        return decided

    def revised(self) -> dict[tuple[int, int], tuple[FormAnswers, tuple[str, ...]]]:
        """Return the second-stage answers by item and person, with the visible verdicts."""
        second = {}
        for event in self.events("revised"):
            payload = orjson.loads(event["payload"])
            answers = FormAnswers.model_validate(payload["answers"])
            second[event["item"], event["person"]] = answers, tuple(payload["seen"])
        return second

    def disputes(self, person: int) -> list[Dispute]:
        """List the items that this adjudicator may decide, by position, with all their readings:
        those that differ or are unsure, are undecided and were not labelled by the adjudicator."""
        everything, decided = self.readings(), self.decisions()
        rows = self._reading().execute(
            "SELECT DISTINCT item FROM event WHERE person = ? AND kind != 'returned'", (person,)
        )
        own = {row["item"] for row in rows}
        back = {event["item"]: event["at"] for event in self.events("returned")}
        listed = []
        for number, item in self.items():
            readings = everything.get(number, [])
            waiting = number in back and any(each.at <= back[number] for each in readings)
            if number in decided or number in own or len(readings) < item.wanted or waiting:
                continue
            questions = tuple(
                question
                for question in self.settings.questions
                if len(values := {each.answers.value(question) for each in readings}) > 1
                or "unsure" in values
            )
            if questions and item.gold is None:
                # The item's own order, always the same, in which readings are called A, B, ...
                random.Random(number).shuffle(readings)
                listed.append(Dispute(number, tuple(readings), questions, number in back))
        return listed

    def adjudicate(
        self, person: int, item: int, answers: FormAnswers, reason: str, request: str
    ) -> int:
        """Decide an item, with a reason; return the event's number, which is the same for the same
        request.

        Raises LabelRefused for a person who is not an adjudicator or labelled it, for an item that
        is decided or incomplete, for an unanswered question and for a missing reason.
        """
        reason = cleaned(reason).strip()
        with self._once(f"adjudicate/{request}", person, item) as (connection, key, earlier):
            if earlier is not None:
                return earlier
            _History(connection, item).check_adjudicator(person)
            if self._unanswered(answers):
                raise LabelRefused("Not decided: answer every question.")
            if not reason:
                raise LabelRefused("Not decided: give a reason.")
            payload = {"answers": answers.payload, "reason": reason}
            return self._append("adjudicated", payload, person, item, key)

    def send_back(self, person: int, item: int, reason: str) -> None:
        """Send an item back to all who labelled it, once, with a reason. Raises LabelRefused as
        ``adjudicate``, and for the second time."""
        reason = cleaned(reason).strip()
        with self._writing() as connection:
            _History(connection, item).check_adjudicator(person)
            if _History(connection, item).last(None, "returned"):
                raise LabelRefused("Not sent back: an item may be sent back once.")
            if not reason:
                raise LabelRefused("Not sent back: say what the annotators should look at.")
            self._append("returned", {"reason": reason}, person, item)


_RETURNED = (
    f"SELECT item.id FROM event AS back JOIN item ON item.id = back.item"  # noqa: S608 - constants
    f" WHERE back.kind = 'returned' AND {_LAST} = 'submitted') < back.id ORDER BY back.id LIMIT 1"
)
# What the person opened, or opened again, last and may still finish.
_OPEN = (
    "SELECT item.id FROM lease JOIN item ON item.id = lease.item"  # noqa: S608 - constants
    f" WHERE lease.person = :person AND (NOT {_CLOSED} AND {_TAKEN} < item.wanted"
    f" OR {_LAST} = 'reopened') > {_LAST} = 'submitted')) ORDER BY lease.expires DESC LIMIT 1"
)
# The first item that nobody has, hidden checks among them; then those with one reading, and so on.
_NEW = (
    f"SELECT id FROM item WHERE wanted > :taken AND ({_TAKEN} = :taken"  # noqa: S608 - constants
    f" OR is_gold AND {_TAKEN} < wanted) AND NOT EXISTS (SELECT 1 FROM event"
    " WHERE event.item = item.id AND event.person = :person AND event.kind = 'opened')"
    " ORDER BY position, id LIMIT 1"
)


def _first(connection: sqlite3.Connection, query: str, place: Mapping[str, int]) -> int | None:
    row = connection.execute(query, place).fetchone()
    return None if row is None else int(row["id"])


class _History:
    """The events of one item up to now."""

    def __init__(self, connection: sqlite3.Connection, item: int) -> None:
        self._connection, self._item = connection, item
        self._events = connection.execute(
            "SELECT id, person, kind, payload FROM event WHERE item = ? ORDER BY id DESC", (item,)
        ).fetchall()

    def last(self, person: int | None, *kinds: EventKind) -> sqlite3.Row | None:
        """Return the last event of these kinds by a person (None: by anybody)."""
        of_kind = (event for event in self._events if event["kind"] in kinds)
        return next((event for event in of_kind if person in (None, event["person"])), None)

    def is_reopened(self, person: int) -> bool:
        """Return True if the last submission was reopened, by the person or the adjudicator."""
        ends = (self.last(person, "reopened"), self.last(None, "returned"))
        submitted = self.last(person, "submitted")
        after = 0 if submitted is None else submitted["id"]
        return any(end is not None and end["id"] > after for end in ends)

    def is_complete(self) -> bool:
        """Return True if all needed labels are submitted."""
        labels = len({each["person"] for each in self._events if each["kind"] == "submitted"})
        wanted = self._connection.execute("SELECT wanted FROM item WHERE id = ?", (self._item,))
        row = wanted.fetchone()
        return row is not None and labels >= int(row["wanted"])

    def reading(self, person: int) -> OwnReading:
        """Return the current state of a person's reading."""
        last = self.last(person, "draft", "submitted")
        submitted = self.last(person, "submitted") is not None
        return OwnReading(
            version=last["id"] if last else 0,
            answers=FormAnswers.model_validate_json(last["payload"]) if last else FormAnswers(),
            submitted=submitted and not self.is_reopened(person),
            shown=self.last(person, "verdicts_shown") is not None,
            revised=self.last(person, "revised") is not None,
        )

    def returned_reason(self) -> str:
        """Return the adjudicator's last reason for sending the item back, or ""."""
        returned = self.last(None, "returned")
        return str(orjson.loads(returned["payload"])["reason"]) if returned else ""

    def check_adjudicator(self, person: int) -> None:
        """Raise LabelRefused for a person who may not decide the item now."""
        row = self._connection.execute("SELECT role FROM person WHERE id = ?", (person,)).fetchone()
        if row is None or row["role"] != "adjudicator":
            raise LabelRefused("Only an adjudicator decides: sign in as one.")
        if self.last(None, "adjudicated"):
            raise LabelRefused("This item is decided already.")
        if any(each["person"] == person and each["kind"] != "returned" for each in self._events):
            raise LabelRefused(
                "Nobody adjudicates an item that they labelled or opened themselves."
            )
        if not self.is_complete():
            raise LabelRefused("This item has not all its labels yet.")


def _connect(path: Path) -> sqlite3.Connection:
    """Open a connection in autocommit mode that threads may share one at a time. Raises
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


def _hash_of(token: str, salt: bytes) -> str:
    return f"{salt.hex()}${scrypt(token.encode(), salt=salt, n=_SCRYPT_COST, r=8, p=1).hex()}"
