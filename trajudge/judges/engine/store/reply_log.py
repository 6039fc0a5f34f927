"""Log of answers that are not committed yet, so that no kill can lose them.

A reply is written here before anything else is done with it: a plain write, which the system keeps
whatever happens to the process. Only a loss of power can take it, until the commit that follows.
Two files take turns, so that none gets rows while its own are being committed. Both are locked
while their owner lives: the next process that opens the cache can tell what was left behind.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from trajudge.trajectories.util.file_lock import lock, remove
from trajudge.trajectories.util.safe_files import read_regular

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
