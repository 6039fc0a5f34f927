"""How many requests a session may send."""

from __future__ import annotations

import time

from trajudge.app.server.problems import PageError

_MOST_SESSIONS = 10_000


class RequestLimit:
    """At most ``most`` requests of one sender in ``seconds``."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._counts: dict[str, tuple[float, int]] = {}

    def forget(self, sender: str) -> None:
        """Count the requests of a sender anew."""
        self._counts.pop(sender, None)

    def count(self, sender: str) -> None:
        """Count a request. Raises PageError 429 for one too many."""
        now = time.monotonic()
        start, before = self._counts.get(sender, (now, 0))
        if now - start >= self._seconds:
            start, before = now, 0
        if len(self._counts) >= _MOST_SESSIONS:
            self._counts = {
                other: count
                for other, count in self._counts.items()
                if now - count[0] < self._seconds
            }
        self._counts[sender] = start, before + 1
        if before >= self._most:
            raise PageError(
                429,
                f"More than {self._most:,} requests in {self._seconds:g} seconds: wait a moment.",
            )
