"""Which item a person labels next: leases, each for a while, renewed by activity.

A new item comes to a person once. One that they opened stays theirs to finish, also behind the end
of their lease, as long as it still wants a label; one that they submitted, skipped or gave back
does not come again, unless the adjudicator sends it back. First readings go out before second ones.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from trajudge.annotations.labelling.database import LabelStore, append_event
from trajudge.annotations.labelling.records import EventKind

LEASE_MILLISECONDS = 30 * 60 * 1000

_CLOSED = (
    "EXISTS (SELECT 1 FROM event WHERE event.item = item.id AND event.person = :person"
    " AND event.kind IN ('submitted', 'skipped', 'released'))"
)
# People who submitted, and others who hold a lease and did not.
_TAKEN = (
    "((SELECT count(DISTINCT event.person) FROM event"
    " WHERE event.item = item.id AND event.kind = 'submitted')"
    " + (SELECT count(*) FROM lease WHERE lease.item = item.id AND lease.person != :person"
    " AND lease.expires > :now AND NOT EXISTS (SELECT 1 FROM event WHERE event.item = item.id"
    " AND event.person = lease.person AND event.kind = 'submitted')))"
)
_LAST = "(SELECT max(id) FROM event WHERE event.item = item.id AND event.person = :person AND kind"


class Offer(NamedTuple):
    """An item that a person may label until ``expires`` (milliseconds since 1970); ``returned`` is
    why the adjudicator sent it back, "" where nobody did."""

    item: int
    expires: int
    returned: str = ""


class OwnProgress(NamedTuple):
    """How many items a person submitted and skipped."""

    own_submitted: int
    own_skipped: int


class Progress(NamedTuple):
    """How far a queue is: labels wanted and submitted, items that are complete, and of a person
    their submissions and skips."""

    wanted: int
    submitted: int
    items: int
    complete: int
    own_submitted: int
    own_skipped: int


def claim_next(store: LabelStore, person: int) -> Offer | None:
    """Lease the person's next item: what was sent back to them, what they have open, or a new one.

    None where nothing is left for them.
    """
    now = store.now()
    with store.writing() as connection:
        place = {"person": person, "now": now}
        item = _returned(connection, place)
        if item is None:
            item = _open(connection, place)
        if item is None:
            item = _new(connection, place)
            if item is None:
                return None
            append_event(connection, now, EventKind.OPENED, {}, person=person, item=item)
        return _lease(connection, now, person, item)


def renew(store: LabelStore, person: int, item: int) -> bool:
    """Renew a lease that the person holds, or take it up again while the item still wants a label;
    tell whether they hold it now."""
    now = store.now()
    with store.writing() as connection:
        if not may_label(connection, now, person, item):
            return False
        _lease(connection, now, person, item)
        return True


def may_label(connection: sqlite3.Connection, now: int, person: int, item: int) -> bool:
    """Tell whether a person may write to their reading of an item now: they opened it, did not
    close it, and no more people than wanted hold or labelled it."""
    place = {"person": person, "now": now, "item": item}
    if not _has(connection, place, EventKind.OPENED):
        return False
    if _has(connection, place, EventKind.SUBMITTED):
        return is_reopened(connection, person, item)
    if _has(connection, place, EventKind.SKIPPED) or _has(connection, place, EventKind.RELEASED):
        return False
    row = connection.execute(
        f"SELECT {_TAKEN} < item.wanted AS free FROM item WHERE id = :item",  # noqa: S608 - constants
        place,
    ).fetchone()
    return bool(row["free"])


def is_reopened(connection: sqlite3.Connection, person: int, item: int) -> bool:
    """Tell whether a submitted reading was opened again, by the person or by the adjudicator."""
    row = connection.execute(
        "SELECT max(id) FILTER (WHERE kind = 'submitted' AND person = ?) AS submitted,"
        " max(id) FILTER (WHERE kind = 'reopened' AND person = ? OR kind = 'returned') AS reopened"
        " FROM event WHERE item = ?",
        (person, person, item),
    ).fetchone()
    return (row["reopened"] or 0) > (row["submitted"] or 0)


def progress(store: LabelStore, person: int | None = None) -> Progress:
    """Count what is done, of all and of one person."""
    row = (
        store.reading()
        .execute(
            "SELECT sum(wanted) AS wanted, count(*) AS items, sum(labels) AS submitted,"
            " sum(labels >= wanted) AS complete FROM (SELECT item.wanted, (SELECT"
            " count(DISTINCT person) FROM event WHERE event.item = item.id AND kind = 'submitted')"
            " AS labels FROM item)"
        )
        .fetchone()
    )
    return Progress(
        wanted=row["wanted"] or 0,
        submitted=row["submitted"] or 0,
        items=row["items"],
        complete=row["complete"] or 0,
        **own_progress(store, person)._asdict(),
    )


def own_progress(store: LabelStore, person: int | None) -> OwnProgress:
    """Count what one person did."""
    row = (
        store.reading()
        .execute(
            "SELECT count(DISTINCT item) FILTER (WHERE kind = 'submitted') AS own_submitted,"
            " count(DISTINCT item) FILTER (WHERE kind = 'skipped') AS own_skipped"
            " FROM event WHERE person = ?",
            (person,),
        )
        .fetchone()
    )
    return OwnProgress(*row)


def hold_lease(connection: sqlite3.Connection, now: int, person: int, item: int) -> int:
    """Give a person the item for the time of a lease, from now; return when it expires."""
    expires = now + LEASE_MILLISECONDS
    connection.execute("INSERT OR REPLACE INTO lease VALUES (?, ?, ?)", (item, person, expires))
    return expires


def returned_reason(connection: sqlite3.Connection, item: int) -> str:
    """Return why an adjudicator sent an item back the last time; "" for one that was not."""
    row = connection.execute(
        "SELECT json_extract(payload, '$.reason') AS reason FROM event"
        " WHERE item = ? AND kind = 'returned' ORDER BY id DESC LIMIT 1",
        (item,),
    ).fetchone()
    return str(row["reason"]) if row else ""


def _lease(connection: sqlite3.Connection, now: int, person: int, item: int) -> Offer:
    expires = hold_lease(connection, now, person, item)
    return Offer(item, expires, returned_reason(connection, item))


def _returned(connection: sqlite3.Connection, place: dict[str, int]) -> int | None:
    row = connection.execute(
        f"SELECT item.id FROM event AS back JOIN item ON item.id = back.item"  # noqa: S608 - constants
        f" WHERE back.kind = 'returned' AND {_LAST} = 'submitted') < back.id"
        " ORDER BY back.id LIMIT 1",
        place,
    ).fetchone()
    return None if row is None else int(row["id"])


def _open(connection: sqlite3.Connection, place: dict[str, int]) -> int | None:
    """Find what the person opened (or opened again) last and may still finish."""
    row = connection.execute(
        "SELECT item.id FROM lease JOIN item ON item.id = lease.item"  # noqa: S608 - constants
        f" WHERE lease.person = :person AND (NOT {_CLOSED} AND {_TAKEN} < item.wanted"
        f" OR {_LAST} = 'reopened') > {_LAST} = 'submitted')) ORDER BY lease.expires DESC LIMIT 1",
        place,
    ).fetchone()
    return None if row is None else int(row["id"])


def _new(connection: sqlite3.Connection, place: dict[str, int]) -> int | None:
    """Find the first item that nobody has, hidden checks among them; then those with one reading,
    and so on."""
    most = connection.execute("SELECT max(wanted) AS most FROM item").fetchone()["most"] or 0
    for taken in range(most):
        row = connection.execute(
            f"SELECT id FROM item WHERE wanted > :taken AND ({_TAKEN} = :taken"  # noqa: S608 - constants
            f" OR is_gold AND {_TAKEN} < wanted) AND NOT EXISTS (SELECT 1 FROM event"
            " WHERE event.item = item.id AND event.person = :person AND event.kind = 'opened')"
            " ORDER BY position, id LIMIT 1",
            {**place, "taken": taken},
        ).fetchone()
        if row is not None:
            return int(row["id"])
    return None


def _has(connection: sqlite3.Connection, place: dict[str, int], kind: EventKind) -> bool:
    row = connection.execute(
        "SELECT 1 FROM event WHERE item = :item AND person = :person AND kind = :kind LIMIT 1",
        {**place, "kind": kind.value},
    ).fetchone()
    return row is not None
