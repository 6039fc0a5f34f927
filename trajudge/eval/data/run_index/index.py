"""One run's index: made once, kept in the user's cache, brought up to date before it is read.

It never stands in the run's folder: what came with somebody's data is not believed, and no command
writes into what it reads. Deleting it costs one reading of the run.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from weakref import finalize

from trajudge.annotations import open_annotations, store
from trajudge.annotations.model import Annotation
from trajudge.eval.data.call_log import CALLS
from trajudge.eval.data.index.cache_place import FileIdentity, identity_of, place_in_cache
from trajudge.eval.data.index.lines import unreadable
from trajudge.eval.data.index.opened_file import OpenedFile
from trajudge.eval.data.run_folder import JUDGMENTS, LABELS, REWARDS, read_rewards
from trajudge.eval.data.run_index.database import LIMIT, reading_from, writing_to
from trajudge.eval.data.run_index.filling import append_judgments
from trajudge.eval.data.run_index.identity import ReadMark, is_continued, mark_of
from trajudge.eval.data.run_index.seconds import CallSeconds
from trajudge.eval.data.run_index.trajectories import (
    Described,
    describe,
    put_labels,
    put_rewards,
    spread,
)
from trajudge.eval.data.run_index.words import forget_words, read_words
from trajudge.judges.model import Judgment
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.gc_pause import collection_paused

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
