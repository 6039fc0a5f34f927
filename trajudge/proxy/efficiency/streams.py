"""Events of a server-sent stream, out of pieces that break anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator

_MAX_EVENT = 8 * 2**20  # bytes; what is longer is no event of a model API


class EventStream:
    """Feed it the pieces of a ``text/event-stream`` body."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[object]:
        """Yield the JSON value of each event that is complete; those without one are passed over
        (``[DONE]``, comments)."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > _MAX_EVENT:
            self._rest = b""
        for line in lines:
            text = line.rstrip(b"\r")
            if text.startswith(b"data:"):
                self._lines.append(text[5:].strip())
            elif not text and self._lines:
                data, self._lines = b"\n".join(self._lines), []
                yield from parsed(data)


def parsed(text: bytes) -> Iterator[object]:
    """Yield the value of a JSON text; nothing for what is none."""
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return
