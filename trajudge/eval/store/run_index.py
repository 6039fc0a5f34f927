"""A run's judgments in a database of the user's cache, for pages that show fifty of them at
a time.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple
from weakref import finalize

import msgspec
from pydantic import ValidationError

from trajudge.annotations import open_annotations, store
from trajudge.annotations.model import Annotation, primary_labels
from trajudge.eval.rungs import furthest_rung
from trajudge.eval.store.run_folder import CALLS, JUDGMENTS, LABELS, REWARDS, read_rewards
from trajudge.eval.store.table import (
    CallFields,
    FileIdentity,
    JournalLine,
    JudgmentFields,
    KeyLike,
    LedgerFields,
    OpenedFile,
    bad_line,
    decode_fields,
    identity_of,
    place_in_cache,
    unreadable,
    whole_lines,
)
from trajudge.judges.model import Call, Judgment
from trajudge.trajectories.model import Trajectory, TrajectoryKey, canonical_task_id
from trajudge.util.errors import UserError
from trajudge.util.files import check_regular, open_regular
from trajudge.util.machine import collection_paused

VERSION = 3

TABLES = """
create table meta (name text primary key, value text not null) without rowid;
create table trajectory (
  id integer primary key,
  benchmark text not null, agent text not null, task_id text not null, attempt integer not null,
  goal text, steps integer, answer text,
  reward real, rule integer, expert integer, side_effect integer, repetition integer, split text,
  inclusion real,
  judges integer not null default 0, yes integer not null default 0,
  no integer not null default 0, failed integer not null default 0,
  unique (benchmark, agent, task_id, attempt)
);
create table label (
  trajectory integer not null, annotator text not null, role text not null,
  success integer, side_effect integer, repetition integer, optimality integer,
  primary key (trajectory, annotator, role)
) without rowid;
create table judgment (
  id integer primary key, run integer not null, place integer not null,
  offset integer not null, length integer not null,
  trajectory integer not null, judge text not null, sample integer not null, status text not null,
  success integer, side_effect integer, repetition integer, optimality integer, process integer,
  score real, cost real, tokens integer not null, seconds real, flags integer not null,
  head text not null, expert integer, rule integer
);
create table pending (
  benchmark text, agent text, task_id text, attempt integer, sample integer, request text,
  seconds real
);
create virtual table said using fts5(
  reasoning, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
create virtual table told using fts5(
  goal, answer, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
"""

INDEXES = """
create index if not exists judgment_trajectory on judgment (trajectory, judge, sample);
create index if not exists judgment_judge on judgment (judge, status, score, id);
create index if not exists judgment_status on judgment (status, id);
create index if not exists judgment_cost on judgment (cost, id);
create index if not exists judgment_score on judgment (score, id);
create index if not exists judgment_seconds on judgment (seconds, id);
"""

VOTES = """
update trajectory set (judges, yes, no, failed) = (
  select count(*), coalesce(sum(vote = 1), 0), coalesce(sum(vote = 0), 0),
         coalesce(sum(vote is null), 0)
  from (
    select case when sum(ok) > 0 and count(said) > 0 then 2 * sum(said) > count(said) end as vote
    from (
      select judge, status = 'ok' as ok, case when status = 'ok' then success end as said
      from judgment where judgment.trajectory = trajectory.id
    ) group by judge
  )
) where id in (select trajectory from judgment where judgment.id >= ?)
"""

"""Counts each judge once a trajectory: of several samples the strict majority of those that
answered, as ``eval.scoring`` counts them."""

ELIDED, REPAIRED = 1, 2

FLAGS = {"elided": ELIDED, "repaired": REPAIRED}

HEAD = 160

"""Characters of a judgment's reasoning that stand in the index."""

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


_ENDS = 4_096  # bytes at either end of what was read


class ReadMark(NamedTuple):
    """``end`` bytes of the file with this ``number`` were read; ``ends`` hashes the first and last
    of them, ``changed`` is when it was changed then, in nanoseconds."""

    number: int = 0
    end: int = 0
    size: int = 0
    changed: int = 0
    ends: str = ""


def mark_of(path: Path, end: int) -> ReadMark:
    """Note that a file was read up to ``end``; of a file that is not there, nothing."""
    try:
        with open_regular(path) as file:
            status = path.stat()
            return ReadMark(
                status.st_ino, end, status.st_size, status.st_mtime_ns, _hash_of_ends(file, end)
            )
    except OSError:
        return ReadMark()


def is_continued(path: Path, mark: ReadMark) -> bool:
    """Tell whether the file is the one that was read, with nothing but more lines at its end."""
    try:
        with open_regular(path) as file:
            status = path.stat()
            if status.st_ino != mark.number or status.st_size < mark.size:
                return False
            if status.st_size == mark.size and status.st_mtime_ns != mark.changed:
                return False
            return _hash_of_ends(file, mark.end) == mark.ends
    except OSError:
        return mark == ReadMark()


def _hash_of_ends(file: BinaryIO, end: int) -> str:
    file.seek(0)
    first = file.read(min(_ENDS, end))
    file.seek(max(end - _ENDS, 0))
    return sha256(first + file.read(min(_ENDS, end))).hexdigest()


_DECODER = msgspec.json.Decoder(LedgerFields)

_Place = tuple[str, str, str, int, int, str]


class CallSeconds:
    """What calls took, by judgment and request, of those that no judgment has taken yet."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._seconds: dict[_Place, float] = {
            row[:6]: row[6] for row in connection.execute("select * from pending")
        }

    def read(self, ledger: Path, offset: int) -> int:
        """Read the ledger from ``offset`` on; return where its whole lines end. Raises UserError
        for a bad line."""
        if not ledger.is_file():
            return offset
        for line in whole_lines(ledger, offset):
            try:
                entry = _DECODER.decode(line.content)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise UserError(f"{ledger}, line {line.number}: {error}") from error
            place = _place(entry.key, entry.sample, entry.request)
            self._seconds[place] = self._seconds.get(place, 0.0) + entry.seconds
            offset = line.offset + len(line.content)
        return offset

    def take(self, key: KeyLike, sample: int, calls: tuple[Call | CallFields, ...]) -> float | None:
        """Return the seconds of a judgment's calls, None where the ledger tells of none."""
        requests = {call.request for call in calls}
        told = [self._seconds.pop(_place(key, sample, each), None) for each in requests]
        known = [seconds for seconds in told if seconds is not None]
        return sum(known) if known else None

    def keep(self) -> None:
        """Keep what no judgment has taken for those that come."""
        self._connection.execute("delete from pending")
        self._connection.executemany(
            "insert into pending values (?, ?, ?, ?, ?, ?, ?)",
            ((*place, seconds) for place, seconds in self._seconds.items()),
        )


def _place(key: KeyLike, sample: int, request: str) -> _Place:
    task = canonical_task_id(key.benchmark, key.task_id)
    return key.benchmark, key.agent, task, key.attempt, sample, request


DONE = "said"

"""The name in ``meta`` of how many judgments were read."""

PART = 1_000

"""Judgments of one transaction."""

LONGEST = 50_000

"""Characters of a text that are looked through."""


def match_of(text: str) -> str:
    """Make the expression that finds the words of ``text`` after each other, the last of which may
    go on."""
    return '"' + text.replace("\0", " ").replace('"', '""') + '" *'


def words_read(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return of how many judgments the reasoning was read, and how many there are."""
    row = connection.execute(
        "select coalesce((select value from meta where name = ?), 0), "
        "(select coalesce(max(id), -1) + 1 from judgment)",
        (DONE,),
    ).fetchone()
    return int(row[0]), int(row[1])


def read_words(connection: sqlite3.Connection, journal: Path) -> bool:
    """Read the reasoning of the next ``PART`` judgments; tell whether there was any left. Raises
    UserError where the file cannot be read."""
    first, count = words_read(connection)
    if first >= count:
        return False
    file, end = OpenedFile(journal), min(first + PART, count)
    lines = connection.execute(
        "select id, offset, length from judgment where id >= ? and id < ?", (first, end)
    ).fetchall()
    for number, offset, length in lines:
        try:
            judgment = decode_fields(file.line(offset, length))
        except ValidationError as error:
            raise UserError(f"{journal}: was changed while it was read: read it again") from error
        text = _plain(f"{judgment.reasoning} {judgment.detail}")
        connection.execute("insert into said (rowid, reasoning) values (?, ?)", (number, text))
    connection.execute("insert or replace into meta values (?, ?)", (DONE, str(end)))
    return True


def put_told(connection: sqlite3.Connection, trajectory: int, goal: str, answer: str) -> None:
    """Note a trajectory's goal and answer, once."""
    texts = _plain(goal), _plain(answer)
    connection.execute(
        "insert into told (rowid, goal, answer) values (?, ?, ?)", (trajectory, *texts)
    )


def forget_words(connection: sqlite3.Connection) -> None:
    """Empty both."""
    for table in ("said", "told"):
        connection.execute(f"insert into {table} ({table}) values ('delete-all')")  # noqa: S608 - our own names


def _plain(text: str) -> str:
    """Cut a text; a lone surrogate, which SQLite cannot hold, is replaced."""
    return text[:LONGEST].encode("utf-8", "replace").decode()


UNSURE = -1

_ANSWER = 400  # characters of a goal or an answer that stand in the index


class KnownTrajectory(NamedTuple):
    """A trajectory's number, and what the expert and the rule say of it."""

    number: int
    expert: int | None = None
    rule: int | None = None


class KnownTrajectories:
    """The trajectories of an index by their keys; a new one gets the next number."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known = {
            (row[1], row[2], row[3], row[4]): KnownTrajectory(row[0], row[5], row[6])
            for row in connection.execute(
                "select id, benchmark, agent, task_id, attempt, expert, rule from trajectory"
            )
        }

    def of(self, key: KeyLike) -> KnownTrajectory:
        """Look a trajectory up, or add it."""
        parts = key.benchmark, key.agent, canonical_task_id(key.benchmark, key.task_id), key.attempt
        known = self._known.get(parts)
        if known is None:
            known = self._known[parts] = KnownTrajectory(len(self._known) + 1)
            self._connection.execute(
                "insert into trajectory (id, benchmark, agent, task_id, attempt) "
                "values (?, ?, ?, ?, ?)",
                (known.number, *parts),
            )
        return known


def put_labels(connection: sqlite3.Connection, labels: Iterable[Annotation]) -> None:
    """Replace all labels; a trajectory's expert is that of ``primary_labels``."""
    labels = list(labels)
    known = KnownTrajectories(connection)
    connection.execute("delete from label")
    connection.executemany(
        "insert or replace into label values (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                known.of(label.key).number,
                label.annotator,
                str(label.role),
                label.success,
                label.side_effect,
                label.repetition,
                label.optimality,
            )
            for label in labels
        ],
    )
    connection.execute(
        "update trajectory set expert = null, side_effect = null, repetition = null, split = null, "
        "inclusion = null"
    )
    connection.executemany(
        "update trajectory set expert = ?, side_effect = ?, repetition = ?, split = ?, "
        "inclusion = ? where id = ?",
        [
            (
                UNSURE if label.success is None else label.success,
                label.side_effect,
                label.repetition,
                label.split,
                label.inclusion_probability,
                known.of(key).number,
            )
            for key, label in primary_labels(labels).items()
        ],
    )


def put_rewards(
    connection: sqlite3.Connection, rewards: Mapping[TrajectoryKey, float | None]
) -> None:
    """Replace all official rewards and the rule's verdicts that they stand for."""
    known = KnownTrajectories(connection)
    connection.execute("update trajectory set reward = null, rule = null")
    connection.executemany(
        "update trajectory set reward = ?, rule = ? where id = ?",
        [
            (reward, None if reward is None else reward > 0.5, known.of(key).number)
            for key, reward in rewards.items()
        ],
    )


def spread(connection: sqlite3.Connection) -> None:
    """Put the labels and the rule's verdicts beside every judgment."""
    connection.execute(
        "update judgment set expert = t.expert, rule = t.rule from trajectory t "
        "where t.id = judgment.trajectory"
    )


class Described(NamedTuple):
    """A trajectory's goal and answer, as far as they are looked through, and its steps."""

    key: TrajectoryKey
    goal: str
    answer: str
    steps: int

    @classmethod
    def of(cls, trajectory: Trajectory) -> Described:
        """Take what is kept of a trajectory."""
        goal, answer = trajectory.goal[:LONGEST], (trajectory.answer or "")[:LONGEST]
        return cls(trajectory.key, goal, answer, len(trajectory.steps))


def undescribed(connection: sqlite3.Connection) -> set[TrajectoryKey]:
    """List the trajectories whose steps are not known yet."""
    rows = connection.execute(
        "select benchmark, agent, task_id, attempt from trajectory where steps is null"
    )
    return {TrajectoryKey(benchmark=b, agent=a, task_id=t, attempt=n) for b, a, t, n in rows}


def describe(connection: sqlite3.Connection, trajectories: Iterable[Described]) -> None:
    """Note goal, answer and steps of trajectories that are known and were not described yet."""
    for one in trajectories:
        row = connection.execute(
            "update trajectory set goal = ?, answer = ?, steps = ? where benchmark = ? "
            "and agent = ? and task_id = ? and attempt = ? and steps is null returning id",
            (_stored(one.goal), _stored(one.answer), one.steps, *one.key.order),
        ).fetchone()
        if row is not None:
            put_told(connection, row[0], one.goal, one.answer)


def _stored(text: str) -> str:
    """Cut a text; a lone surrogate, which SQLite cannot hold, is replaced."""
    return text[:_ANSWER].encode("utf-8", "replace").decode()


_INSERT = f"insert into judgment values ({', '.join('?' * 22)})"  # noqa: S608 - no text of anybody's

_BILLED = attrgetter("input", "cache_read", "cache_write", "output")

Row = tuple[object, ...]


def append_judgments(
    connection: sqlite3.Connection, path: Path, offset: int, seconds: CallSeconds
) -> int:
    """Add the file's lines from ``offset`` on; return where its whole lines end. A last line
    without its newline waits for the rest. Raises UserError for a bad line."""
    first = connection.execute("select coalesce(max(id), -1) + 1 from judgment").fetchone()[0]
    known = KnownTrajectories(connection)
    end = offset

    def rows() -> Iterator[Row]:
        nonlocal end
        for place, line in enumerate(whole_lines(path, offset), start=first):
            yield _row(place, line, _decoded(path, place, line), known, seconds)
            end = line.offset + len(line.content)

    connection.executemany(_INSERT, rows())
    _indexed(connection)
    connection.execute(VOTES, (first,))
    return end


def _indexed(connection: sqlite3.Connection) -> None:
    """Make the indexes inside the transaction, which a script would end."""
    for statement in filter(str.strip, INDEXES.split(";")):
        connection.execute(statement)


def _decoded(path: Path, place: int, line: JournalLine) -> Judgment | JudgmentFields:
    try:
        return decode_fields(line.content)
    except ValidationError as error:
        raise bad_line(path, place + 1, error) from error


def _row(
    place: int,
    line: JournalLine,
    judgment: Judgment | JudgmentFields,
    known: KnownTrajectories,
    seconds: CallSeconds,
) -> Row:
    trajectory = known.of(judgment.key)
    calls = judgment.calls
    flags = (ELIDED if furthest_rung(calls) else 0) | (REPAIRED if judgment.fallback else 0)
    process = judgment.process
    return (
        place,
        0,
        place,
        line.offset,
        len(line.content),
        trajectory.number,
        judgment.judge,
        judgment.sample,
        str(judgment.status),
        judgment.success,
        judgment.side_effect,
        judgment.repetition,
        judgment.optimality,
        process if isinstance(process, bool) else None,
        judgment.score,
        _cost(calls),
        sum(sum(_BILLED(call.usage)) for call in calls if call.usage),
        seconds.take(judgment.key, judgment.sample, calls),
        flags,
        (judgment.reasoning or judgment.detail)[:HEAD],
        trajectory.expert,
        trajectory.rule,
    )


def _cost(calls: tuple[Call | CallFields, ...]) -> float | None:
    """Add up what calls cost; None where the price of one is not known."""
    costs = [call.cost for call in calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


NAME = ".run-index.sqlite"

_FILES = (JUDGMENTS, CALLS, LABELS, REWARDS)


class RunIndex:
    """The index of the run in ``folder``; with ``annotations``, a specification, these are its
    labels instead of the run's own. To be used from any thread."""

    def __init__(self, folder: Path, annotations: str | None = None) -> None:
        self.folder = folder
        self._annotations = annotations
        # What other labels were when they were read cannot be told by a file of the run's.
        self._wants_labels = annotations is not None
        self._lock = threading.Lock()
        self._seen: tuple[FileIdentity, ...] = ()
        self.place = self._placed()
        self.descriptions = 0  # how often texts were read beside the run's files

    def refresh(self) -> None:
        """Read what has been appended since, or all of it where the files were replaced. Raises
        UserError for what cannot be read."""
        with self._lock:
            now = tuple(identity_of(self.folder / name) for name in _FILES)
            if now == self._seen:
                return
            with collection_paused(), writing_to(self.place) as connection:
                self._update(connection)
            self._seen = now

    @property
    def version(self) -> tuple[FileIdentity, ...]:
        """What the files were when they were read last: what was computed of them holds as long as
        this does."""
        return self._seen

    def reading(self, limit: float = LIMIT) -> AbstractContextManager[sqlite3.Connection]:
        """Bring the index up to date and open it for reading, for at most ``limit`` seconds. Raises
        UserError."""
        self.refresh()
        return reading_from(self.place, limit)

    def describe(self, trajectories: Iterable[Described]) -> None:
        """Note goals, answers and steps, which the run's folder does not hold."""
        with self._lock, writing_to(self.place) as connection:
            describe(connection, trajectories)
            self.descriptions += 1

    def read_words(self) -> bool:
        """Read a part of what judges reasoned, so that its words are found; tell whether there was
        any left. Raises UserError."""
        with self._lock, writing_to(self.place) as connection:
            left = read_words(connection, self.folder / JUDGMENTS)
            self.descriptions += left
            return left

    def judgment(self, place: int) -> Judgment:
        """Decode the judgment in the line ``place`` of the file, counted from 0. Raises UserError
        where there is none, or the file was changed while it was read."""
        with self.reading() as connection:
            row = connection.execute(
                "select offset, length from judgment where id = ?", (place,)
            ).fetchone()
        if row is None:
            raise UserError(f"{self.folder.name}: there is no judgment {place:,}")
        file = OpenedFile(self.folder / JUDGMENTS)
        return file.record(Judgment, row["offset"], row["length"])

    def _placed(self) -> Path:
        name = f"-{self._annotations}" if self._annotations else ""
        place = place_in_cache(self.folder / f"{JUDGMENTS}{name}", NAME)
        if place is not None:
            return place
        folder = tempfile.TemporaryDirectory(prefix="trajudge-")
        finalize(self, folder.cleanup)
        return Path(folder.name) / NAME

    def _update(self, connection: sqlite3.Connection) -> None:
        known = dict(connection.execute("select name, value from meta"))
        marks = {name: _mark(known.get(name)) for name in _FILES}
        journal, ledger = self.folder / JUDGMENTS, self.folder / CALLS
        if not journal.is_file():
            raise unreadable(journal, FileNotFoundError(2, "no such file"))
        begun = marks[JUDGMENTS] == ReadMark()
        if begun or not all(is_continued(self.folder / n, marks[n]) for n in (JUDGMENTS, CALLS)):
            for table in ("judgment", "pending", "label", "trajectory", "meta"):
                connection.execute(f"delete from {table}")  # noqa: S608 - our own names
            forget_words(connection)
            marks = dict.fromkeys(_FILES, ReadMark())
        changed = self._update_labels(connection, marks)
        seconds = CallSeconds(connection)
        called = seconds.read(ledger, marks[CALLS].end)
        end = append_judgments(connection, journal, marks[JUDGMENTS].end, seconds)
        seconds.keep()
        if changed:
            spread(connection)
        marks |= {JUDGMENTS: mark_of(journal, end), CALLS: mark_of(ledger, called)}
        connection.executemany(
            "insert or replace into meta values (?, ?)",
            [(name, json.dumps(mark)) for name, mark in marks.items()],
        )

    def _update_labels(self, connection: sqlite3.Connection, marks: dict[str, ReadMark]) -> bool:
        """Read labels and rewards where they changed; tell whether any did."""
        changed = False
        for name in (LABELS, REWARDS):
            path = self.folder / name
            now = mark_of(path, path.stat().st_size if path.is_file() else 0)
            forced = name == LABELS and self._wants_labels
            if now == marks[name] and not forced:
                continue
            if name == LABELS:
                put_labels(connection, self._labels())
                self._wants_labels = False
            else:
                put_rewards(connection, read_rewards(self.folder) if path.is_file() else {})
            marks[name], changed = now, True
        return changed

    def _labels(self) -> list[Annotation]:
        if self._annotations:
            return [*open_annotations(self._annotations)]
        path = self.folder / LABELS
        return store.load(path) if path.is_file() else []


def _mark(text: str | None) -> ReadMark:
    return ReadMark(*json.loads(text)) if text else ReadMark()
