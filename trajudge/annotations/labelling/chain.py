"""The log of events: appending to it, reading it, and proving that nothing in it was changed.

Every event holds the hash of the one before, so that changing, inserting or removing an event
breaks every hash behind it. What was cut off at the end the chain alone cannot tell: ``ChainCheck``
gives the number of events and the last hash, to be compared with those of an earlier export.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from trajudge.annotations.labelling.records import EventKind, LabelEvent

START = sha256(b"trajudge label events").hexdigest()
_COLUMNS = "id, at, person, item, kind, payload, request, prev_hash, hash"


class ChainCheck(NamedTuple):
    """How many events there are, the hash of the last, and the first that does not fit (None: all
    do) with the reason."""

    events: int
    head: str
    broken_at: int | None = None
    reason: str = ""


def append_event(
    connection: sqlite3.Connection,
    at: int,
    kind: EventKind,
    payload: Mapping[str, Any],
    *,
    person: int | None = None,
    item: int | None = None,
    request: str | None = None,
) -> int:
    """Append an event within a writing transaction; return its number."""
    last = connection.execute("SELECT id, hash FROM event ORDER BY id DESC LIMIT 1").fetchone()
    number, previous = (last["id"] + 1, last["hash"]) if last else (1, START)
    text = orjson.dumps(dict(payload), option=orjson.OPT_SORT_KEYS).decode()
    event = LabelEvent(number, at, person, item, kind.value, text, request, previous, "")
    connection.execute(
        f"INSERT INTO event ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
        event._replace(hash=event_hash(event)),
    )
    return number


def event_hash(event: LabelEvent) -> str:
    """Compute an event's hash from all else that it holds."""
    return sha256(orjson.dumps(list(event[:-1]))).hexdigest()


def read_events(connection: sqlite3.Connection, after: int = 0) -> Iterator[LabelEvent]:
    """Yield the events behind a number, in their order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM event WHERE id > ? ORDER BY id",  # noqa: S608 - a constant
        (after,),
    )
    for row in rows:
        yield LabelEvent(*row)


def check_chain(events: Iterable[LabelEvent]) -> ChainCheck:
    """Recompute every hash and find the first event that was changed or does not follow."""
    head, number = START, 0
    for event in events:
        reason = ""
        if event.id != number + 1:
            reason = f"event {number + 1} is missing"
        elif event.prev_hash != head:
            reason = "it does not follow the event before it"
        elif event.hash != event_hash(event):
            reason = "its content does not fit its hash"
        if reason:
            return ChainCheck(number, head, event.id, reason)
        head, number = event.hash, event.id
    return ChainCheck(number, head)
