"""The judgments of files: columns in memory, records when they are asked for; those of a run by
their offset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
from pydantic import ValidationError

from trajudge.eval.data.index.call_ledger import with_ledger
from trajudge.eval.data.index.columns import (
    JudgmentColumns,
    JudgmentColumnsBuilder,
    behind_each_other,
    places_of,
)
from trajudge.eval.data.index.lines import bad_line, decode_fields, whole_lines
from trajudge.eval.data.index.opened_file import OpenedFile
from trajudge.eval.data.index.saved_columns import SavedColumns
from trajudge.eval.stats.interval import Bools, Ints
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.gc_pause import collection_paused

# Judgments of so many bytes of their file are kept as records once they were all asked for.
KEPT_BYTES = 2**23
ROWS_AT_ONCE = 4096  # of columns as Python's own numbers, which take several times the memory


class RunJudgments(Sequence[Judgment]):
    """Judgments of runs' files, those of ``columns`` in their order; ``file`` (N,) is the one of
    ``files`` that a judgment's line stands in.

    A record is decoded when it is asked for, from the file as it was opened, with what the ledger
    tells of its calls in all sessions and the judge's name of the columns; records of small files
    are kept.
    """

    def __init__(self, files: Sequence[OpenedFile], columns: JudgmentColumns, file: Ints) -> None:
        self._columns: JudgmentColumns | None = columns
        self._files = tuple(files)
        self._file = file
        self._kept: list[Judgment] | None = None
        self._read_again: Callable[[], JudgmentColumns] | None = None

    @classmethod
    def of_file(
        cls,
        path: Path,
        columns: JudgmentColumns,
        read_again: Callable[[], JudgmentColumns] | None = None,
    ) -> RunJudgments:
        """Open the one file that holds them all; ``read_again`` returns the columns once more.
        Raises UserError if it cannot be read."""
        made = cls([OpenedFile(path)], columns, np.zeros(len(columns), dtype=np.int32))
        made._read_again = read_again
        return made

    @property
    def columns(self) -> JudgmentColumns:
        """The judgments as columns. Raises UserError where they were let go and the file was
        changed since."""
        if self._columns is None:
            columns = self._read_again() if self._read_again else None
            if columns is None or len(columns) != len(self):
                raise UserError(
                    f"{self._files[0].path}: was changed while it was read: read it again"
                )
            self._columns = columns
        return self._columns

    def let_go(self) -> None:
        """Free the memory of the columns where they can be read again from the user's cache."""
        if self._read_again is not None:
            self._columns = None

    @overload
    def __getitem__(self, place: int) -> Judgment: ...
    @overload
    def __getitem__(self, place: slice) -> list[Judgment]: ...
    def __getitem__(self, place: int | slice) -> Judgment | list[Judgment]:
        if self._kept is not None:
            return self._kept[place]
        rows = range(len(self))[place]
        if isinstance(rows, int):
            return self._judgment(rows)
        return [*map(self._judgment, rows)]

    def __iter__(self) -> Iterator[Judgment]:
        if self._kept is None and int(self.columns.length.sum()) <= KEPT_BYTES:
            with collection_paused():
                self._kept = [*map(self._judgment, range(len(self)))]
        return map(self._judgment, range(len(self))) if self._kept is None else iter(self._kept)

    def __len__(self) -> int:
        return len(self._file)

    def at(self, rows: Ints | Bools) -> RunJudgments:
        """Keep the judgments at these rows (places or a mask), in that order."""
        chosen = places_of(rows)
        return RunJudgments(self._files, self.columns.at(chosen), self._file[chosen])

    def lines(self) -> Iterator[bytes]:
        """Yield the lines as they stand in the files, newlines included."""
        columns = self.columns
        for start in range(0, len(self), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            places = (self._file[some], columns.offset[some], columns.length[some])
            for file, offset, length in zip(*(part.tolist() for part in places), strict=True):
                yield self._files[file].line(offset, length)

    def in_file(self, path: Path) -> RunJudgments:
        """Find them in a file that holds exactly their lines, in their order."""
        length = self.columns.length
        columns = replace(self.columns, offset=np.cumsum(length) - length)
        return RunJudgments.of_file(path, columns)

    def renamed(self, names: Mapping[str, str]) -> RunJudgments:
        """Give judges other names."""
        judges = tuple(names.get(judge, judge) for judge in self.columns.judges)
        if judges == self.columns.judges:
            return self
        return RunJudgments(self._files, replace(self.columns, judges=judges), self._file)

    def behind(self, others: Sequence[RunJudgments]) -> RunJudgments:
        """Put these behind ``others``."""
        parts = [*others, self]
        if len(parts) == 1:
            return self
        starts = np.cumsum([0, *(len(part._files) for part in parts)])[:-1]
        return RunJudgments(
            [file for part in parts for file in part._files],
            behind_each_other([part.columns for part in parts]),
            np.concatenate([p._file + start for p, start in zip(parts, starts, strict=True)]),
        )

    def _judgment(self, row: int) -> Judgment:
        columns = self.columns
        line = int(columns.offset[row]), int(columns.length[row])
        judgment = self._files[int(self._file[row])].record(Judgment, *line)
        # The record is new, and nobody else holds it yet.
        vars(judgment)["judge"] = columns.judges[int(columns.judge[row])]
        first = self._first_call[row]
        mine = slice(first, first + len(judgment.calls))
        took, cached = columns.calls.seconds[mine].tolist(), columns.calls.cached[mine].tolist()
        for call, seconds, was_cached in zip(judgment.calls, took, cached, strict=True):
            vars(call).update(seconds=seconds, cached=was_cached)
        return judgment

    @cached_property
    def _first_call(self) -> Ints:
        return np.searchsorted(self.columns.calls.judgment, np.arange(len(self)))


def read_run_judgments(path: Path, ledger: Path) -> RunJudgments:
    """Read a run's judgments in file order, ``ledger`` for what their calls took. A last line
    without its newline was torn by a kill and is left out; a bad line elsewhere raises
    UserError. The columns of a large run are kept in the user's cache."""
    saved = SavedColumns(path, ledger)
    columns = saved.load()
    if columns is None:
        columns = _read_columns(path, ledger)
        saved.keep(columns)

    def read_again() -> JudgmentColumns:
        kept = saved.load()
        return _read_columns(path, ledger) if kept is None else kept

    return RunJudgments.of_file(path, columns, read_again if saved.is_kept else None)


def _read_columns(path: Path, ledger: Path) -> JudgmentColumns:
    builder = JudgmentColumnsBuilder()
    with collection_paused():
        for line in whole_lines(path):
            try:
                builder.add(decode_fields(line.content), line.offset, len(line.content))
            except ValidationError as error:
                raise bad_line(path, line.number, error) from error
        return with_ledger(builder.build(), ledger)


class PublishedJudgments(Sequence[Judgment]):
    """Judgments in columns whose records are ``read``, all of them, when one is asked for."""

    def __init__(self, columns: JudgmentColumns, read: Callable[[], Sequence[Judgment]]) -> None:
        self.columns = columns
        self._read = read

    @overload
    def __getitem__(self, place: int) -> Judgment: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Judgment]: ...
    def __getitem__(self, place: int | slice) -> Judgment | Sequence[Judgment]:
        return self._records[place]

    def __len__(self) -> int:
        return len(self.columns)

    def at(self, rows: Ints | Bools) -> PublishedJudgments:
        """Keep the judgments at these rows (places or a mask), in that order."""
        chosen = places_of(rows)
        return PublishedJudgments(
            self.columns.at(chosen), lambda: [self[place] for place in chosen.tolist()]
        )

    @cached_property
    def _records(self) -> Sequence[Judgment]:
        return self._read()


def columns_of(judgments: Iterable[Judgment]) -> JudgmentColumns:
    """Return the columns of judgments, which those of files have."""
    if isinstance(judgments, RunJudgments | PublishedJudgments):
        return judgments.columns
    return JudgmentColumns.of(judgments)


def keys_of_judgments(judgments: Iterable[Judgment]) -> Iterable[TrajectoryKey]:
    """Return the keys of judgments, with repeats; no record of a file is decoded for them."""
    if isinstance(judgments, RunJudgments | PublishedJudgments):
        return judgments.columns.keys
    return (judgment.key for judgment in judgments)


def let_go(judgments: Iterable[Judgment]) -> None:
    """Free what columns of judgments take, where they can be read again."""
    if isinstance(judgments, RunJudgments):
        judgments.let_go()
