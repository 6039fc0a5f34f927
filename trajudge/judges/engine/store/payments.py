"""Ledger of what a run's attempts cost, over all its sessions.

Every attempt that costs something, or nobody knows what, leaves a line when it is settled. Under
``--max-cost`` each also leaves one before it is sent, with its worst case. An attempt of which only
this first line stands was under way when its process died: nobody knows what it cost, so the worst
case counts.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import orjson

from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular


class Payments:
    """Notes attempts as lines of JSON in the file at ``path``, which is created with the first one.
    Every method raises UserError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._session = secrets.token_hex(4)
        self._count = 0

    def sent(self, request_hash: str, worst: float) -> str:
        """Note an attempt that is about to be sent and return its name, for ``settled``."""
        attempt = self._named()
        self.note(attempt, request_hash, worst)
        return attempt

    def paid(self, request_hash: str, cost: float | None) -> None:
        """Note the cost of an attempt that was not noted before it was sent, None if its price is
        not known."""
        self.note(self._named(), request_hash, cost)  # of one that is never settled, this counts

    def note(self, attempt: str, request_hash: str, cost: float | None) -> None:
        """Note the cost of an attempt that others made and name, None if its price is not known."""
        line = {"attempt": attempt, "request": request_hash, "reserved": cost}
        self._write(orjson.dumps(line))

    def settled(self, attempt: str, cost: float) -> None:
        """Note what the attempt cost."""
        self._write(orjson.dumps({"attempt": attempt, "paid": cost}))

    def _named(self) -> str:
        self._count += 1
        return f"{self._session}-{self._count}"

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, line: bytes) -> None:
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._descriptor = os.open(self.path, flags, 0o644)
            # The line break before it ends what a kill may have left unfinished.
            os.write(self._descriptor, b"\n" + line)
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror}): make room, or the folder "
                "writable, and start the same command again; nothing that was answered is lost"
            ) from error


def read_payments(path: Path) -> dict[str, float]:
    """Read the dollars by request: the cost of its attempts, and the worst case of those never
    settled; without those of unknown price. Empty without the file."""
    return dollars_by_request(read_attempts(path))


def dollars_by_request(attempts: Mapping[str, tuple[str, float | None]]) -> dict[str, float]:
    """Add up the dollars of attempts as ``read_attempts`` returns them, by request; without those
    of unknown price."""
    dollars: dict[str, float] = defaultdict(float)
    for request_hash, cost in attempts.values():
        dollars[request_hash] += cost or 0.0
    return {request_hash: cost for request_hash, cost in dollars.items() if cost}


def read_attempts(path: Path) -> dict[str, tuple[str, float | None]]:
    """Read the request of each attempt, and its dollars as of ``read_payments``; None if its price
    is not known."""
    sent: dict[str, tuple[str, float | None]] = {}
    lines = read_regular(path).split(b"\n") if path.exists() else []
    for line in lines:
        try:
            entry = orjson.loads(line)
            attempt = str(entry["attempt"])
            if "reserved" in entry:
                worst = entry["reserved"]
                sent[attempt] = str(entry["request"]), None if worst is None else float(worst)
            else:
                sent[attempt] = sent[attempt][0], float(entry["paid"])
        except (ValueError, KeyError, TypeError):
            continue  # empty, or torn by a kill before its attempt was sent
    return sent
