"""Lines of batches on their way into files: spooled to the disk, cut by the limits of a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from trajudge.judges.batch.records import BatchLimits, BatchLine
from trajudge.util.errors import UserError


class _Place(NamedTuple):
    request: str
    offset: int
    size: int
    parameters: dict[str, Any]
    tokens: int
    reserved: float


class Spool:
    """Lines of one model that wait for their submission. Their bytes (screenshots, for the most
    part) are in a temporary file, which ends with the process: a line that was never submitted is
    rendered again."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
        self._places: list[_Place] = []
        self.requests: set[str] = set()
        self.reserved = 0.0

    def add(self, line: BatchLine) -> None:
        """Take in a line. Raises UserError if it alone is over a limit of a file."""
        limits = self._limits
        if len(line.content) + 1 > limits.bytes or line.tokens > (limits.tokens or line.tokens):
            raise UserError(
                f"a request of {len(line.content):,} bytes and about {line.tokens:,} tokens does "
                f"not fit a batch file ({limits.bytes:,} bytes): run without --batch"
            )
        offset = self._file.seek(0, 2)
        self._file.write(line.content)
        size = len(line.content)
        self._places.append(
            _Place(line.request, offset, size, line.parameters, line.tokens, line.reserved)
        )
        self.requests.add(line.request)
        self.reserved += line.reserved

    def parts(self) -> Iterator[list[BatchLine]]:
        """Yield the lines in files within the limits, in the order in which they came."""
        part: list[_Place] = []
        size = tokens = 0
        for place in self._places:
            size += place.size + 1
            tokens += place.tokens
            if part and self._over(len(part) + 1, size, tokens):
                yield self._read(part)
                part, size, tokens = [], place.size + 1, place.tokens
            part.append(place)
        if part:
            yield self._read(part)

    def close(self) -> None:
        self._file.close()

    def _over(self, lines: int, size: int, tokens: int) -> bool:
        limits = self._limits
        most = min(n for n in (limits.tokens, limits.enqueued, tokens) if n is not None)
        return lines > limits.lines or size > limits.bytes or tokens > most

    def _read(self, places: list[_Place]) -> list[BatchLine]:
        lines = []
        for request, offset, size, parameters, tokens, reserved in places:
            self._file.seek(offset)
            lines.append(BatchLine(request, self._file.read(size), parameters, tokens, reserved))
        return lines
