"""The journal of a run: ``judgments.jsonl``, a line for every judgment as soon as it is made.

While a run goes on, lines stand in the order of arrival; ``finish`` puts them into the order of
the trajectories, so that a run that was killed and resumed ends with the same bytes as one that
was not. ``calls.jsonl`` beside it is the ledger of this machine's calls: seconds and cache hits.
"""

from __future__ import annotations

from contextlib import ExitStack
from io import FileIO
from pathlib import Path

import numpy as np

from trajudge.eval.data.call_log import CALLS, ledger_lines
from trajudge.eval.data.index.columns import JudgmentColumns, last_of_each
from trajudge.eval.data.index.judgments import RunJudgments, read_run_judgments
from trajudge.eval.data.index.keys import KeyColumns, places_among
from trajudge.eval.data.index.saved_columns import SavedColumns
from trajudge.eval.data.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_lines,
    write_record,
    writing,
)
from trajudge.eval.stats.interval import Ints
from trajudge.judges.model import Judgment
from trajudge.trajectories.util.errors import UserError


class JudgmentJournal:
    """The judgments of a run's folder: those from before, and those that are added. Nothing of
    these stays in memory: they are read from their file when they are asked for."""

    def __init__(self, folder: Path) -> None:
        """Open the journal. Raises UserError for an unwritable folder or a damaged line."""
        self._folder = folder
        try:
            self._files = {name: _open_to_append(folder / name) for name in (JUDGMENTS, CALLS)}
        except OSError as error:
            raise UserError(f"{folder}: cannot be written ({error.strerror})") from error
        self._lines: RunJudgments | None = self._read()

    def __enter__(self) -> JudgmentJournal:
        return self

    def __exit__(self, *error: object) -> None:
        with writing(self._folder), ExitStack() as files:
            for file in self._files.values():
                files.callback(file.close)

    def judgments(self) -> RunJudgments:
        """Return the judgments so far, the last of each trajectory and sample, in the order of
        their lines, with the seconds of their calls in all sessions."""
        if self._lines is None:
            self._lines = self._read()
        return self._lines.at(last_of_each(self._lines.columns))

    def add(self, judgment: Judgment) -> None:
        """Write one judgment; it has left this process when this returns. Raises UserError on a
        full disk: nothing of the line is then in the file."""
        self._lines = None
        write_record(self._folder, judgment)
        line = judgment_line(judgment)
        with writing(self._folder):
            _append(self._files[JUDGMENTS], line)
            _append(self._files[CALLS], b"".join(ledger_lines(judgment)))

    def finish(self, keys: KeyColumns) -> RunJudgments:
        """Rewrite ``judgments.jsonl`` in the order of ``keys`` (then by sample), and return the
        judgments with the seconds of their calls.

        Raises UserError on a full disk; the file then stays as it was.
        """
        is_new = self._lines is None
        judgments = self.judgments()
        order = _order(judgments.columns, keys, self._folder)
        path, ledger = self._folder / JUDGMENTS, self._folder / CALLS
        if len(judgments) < self._count() or (np.diff(order) < 0).any():
            judgments = judgments.at(order)
            write_lines(path, judgments.lines())
            judgments, is_new = judgments.in_file(path), True
        if is_new:
            SavedColumns(path, ledger, written_here=True).keep(judgments.columns)
        return judgments

    def _read(self) -> RunJudgments:
        return read_run_judgments(self._folder / JUDGMENTS, self._folder / CALLS)

    def _count(self) -> int:
        return 0 if self._lines is None else len(self._lines)


def _order(columns: JudgmentColumns, keys: KeyColumns, folder: Path) -> Ints:
    """Return the rows in the order of ``keys``, then by sample. Raises UserError for a judgment of
    another trajectory."""
    mine = places_among(columns.keys, keys)
    if (mine < 0).any():
        other = columns.keys.key(int(np.argmin(mine)))
        raise UserError(
            f"{folder}: holds a judgment of {other}, which the data no longer has: choose another "
            "--out"
        )
    return np.lexsort((columns.sample, mine))


def _append(file: FileIO, content: bytes) -> None:
    """Write all of it at the end, in one system call as a rule, or nothing. Raises OSError."""
    written = 0
    try:
        while written < len(content):
            written += file.write(content[written:])
    except OSError:
        file.truncate(file.seek(0, 2) - written)
        raise


def _open_to_append(path: Path) -> FileIO:
    """At the end of the last whole line: a kill may have torn the one after it. Nothing is held
    back: a buffer would be emptied after every line, which takes three system calls for one."""
    file = path.open("ab+", buffering=0)
    size = file.seek(0, 2)
    position = size
    while position:
        start = max(0, position - 65_536)
        file.seek(start)
        newline = file.read(position - start).rfind(b"\n")
        if newline >= 0:
            position = start + newline + 1
            break
        position = start
    if position != size:
        file.truncate(position)
    file.seek(0, 2)
    return file
