"""Ledger of what a run's attempts cost, over all its sessions.

Every attempt that costs something leaves a line when it is settled. Under ``--max-cost`` each also
leaves one before it is sent, with its worst case. An attempt of which only this first line stands
was under way when its process died: nobody knows what it cost, so the worst case counts.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson

from trajudge.trajectories.util.errors import UserError


class Payments:
    """The file at ``path``, to which lines are appended; created with the first one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._session = secrets.token_hex(4)
        self._count = 0
        self._descriptor: int | None = None

    def sent(self, request_hash: str, worst: float) -> str:
        """Note an attempt that is about to be sent and return its name, for ``settled``. Raises
        UserError."""
        self._count += 1
        attempt = f"{self._session}-{self._count}"
        self.note(attempt, request_hash, worst)
        return attempt

    def paid(self, request_hash: str, cost: float) -> None:
        """Note the cost of an attempt that was not noted before it was sent. Raises UserError."""
        self.sent(request_hash, cost)  # of one that is never settled, this counts

    def note(self, attempt: str, request_hash: str, cost: float) -> None:
        """Note the cost of an attempt that others made and name. Raises UserError."""
        self._append({"attempt": attempt, "request": request_hash, "reserved": cost})

    def settled(self, attempt: str, cost: float) -> None:
        """Note what the attempt cost. Raises UserError."""
        self._append({"attempt": attempt, "paid": cost})

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, line: dict[str, Any]) -> None:
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._descriptor = os.open(self.path, flags, 0o644)
            # The line break before it ends what a kill may have left unfinished.
            content = b"\n" + orjson.dumps(line)
            os.write(self._descriptor, content)
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror}): make room, or the folder "
                "writable, and start the same command again; nothing that was answered is lost"
            ) from error


def read_payments(path: Path) -> dict[str, float]:
    """Read the dollars by request: the cost of its attempts, and the worst case of those never
    settled. Empty without the file."""
    dollars: dict[str, float] = defaultdict(float)
    for request_hash, cost in read_attempts(path).values():
        dollars[request_hash] += cost
    return {request_hash: cost for request_hash, cost in dollars.items() if cost}


def read_attempts(path: Path) -> dict[str, tuple[str, float]]:
    """Read the request of each attempt, and its dollars as of ``read_payments``."""
    by_attempt: dict[str, tuple[str, float]] = {}
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    for line in lines:
        try:
            entry = orjson.loads(line)
            attempt = str(entry["attempt"])
            if "reserved" in entry:
                by_attempt[attempt] = str(entry["request"]), float(entry["reserved"])
            elif attempt in by_attempt:
                by_attempt[attempt] = by_attempt[attempt][0], float(entry["paid"])
        except (ValueError, KeyError, TypeError):
            continue  # empty, or torn by a kill before its attempt was sent
    return by_attempt
