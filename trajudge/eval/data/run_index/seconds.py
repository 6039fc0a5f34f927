"""The seconds of a run's calls, while its ledger grows."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from trajudge.eval.data.index.call_ledger import LedgerFields
from trajudge.eval.data.index.keys import KeyLike
from trajudge.eval.data.index.lines import CallFields, whole_lines
from trajudge.judges.model import Call
from trajudge.trajectories.model import canonical_task_id
from trajudge.trajectories.util.errors import UserError

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
