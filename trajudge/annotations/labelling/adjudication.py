"""Items on which people differ or are unsure, and what an adjudicator decides of them.

An adjudicator sees the readings without names, in an order of the item's own. Nobody adjudicates
what they labelled or opened themselves. An item may be sent back to its annotators once.
"""

from __future__ import annotations

import random
import sqlite3
from typing import NamedTuple

from trajudge.annotations.labelling.database import LabelStore, answered_events, append_event
from trajudge.annotations.labelling.records import EventKind, FormAnswers, Question, ReadingId
from trajudge.annotations.labelling.submissions import (
    LabelRefused,
    answers_payload,
    cleaned,
    earlier_event,
    scoped_request,
)


class SubmittedReading(NamedTuple):
    """A submitted reading: who, what, and when (milliseconds since 1970)."""

    person: int
    answers: FormAnswers
    at: int


class Dispute(NamedTuple):
    """An item to adjudicate: its readings in an order that tells nothing of who they are of, and
    the questions on which they differ or are unsure."""

    item: int
    readings: tuple[SubmittedReading, ...]
    questions: tuple[Question, ...]
    returned: bool


class Adjudication(NamedTuple):
    """What an adjudicator decided."""

    person: int
    answers: FormAnswers
    reason: str
    at: int


def readings(connection: sqlite3.Connection) -> dict[int, list[SubmittedReading]]:
    """Map every item to its submitted readings, in the order of their first submission."""
    rows = connection.execute(
        "SELECT current_label.*, (SELECT min(id) FROM event AS other WHERE other.item ="
        " current_label.item AND other.person = current_label.person AND other.kind = 'submitted')"
        " AS first FROM current_label ORDER BY item, first"
    )
    grouped: dict[int, list[SubmittedReading]] = {}
    for row in rows:
        answers = FormAnswers.model_validate_json(row["payload"])
        grouped.setdefault(row["item"], []).append(
            SubmittedReading(row["person"], answers, row["at"])
        )
    return grouped


def decisions(connection: sqlite3.Connection) -> dict[int, Adjudication]:
    """Map every adjudicated item to its last decision."""
    return {
        row["item"]: Adjudication(row["person"], answers, payload["reason"], row["at"])
        for row, answers, payload in answered_events(connection, EventKind.ADJUDICATED)
    }


def disputes(store: LabelStore, person: int) -> list[Dispute]:
    """List what this adjudicator may decide, by position: items with all their readings, which
    differ or are unsure, are not decided and are not the person's own."""
    connection = store.reading()
    everything, decided = readings(connection), decisions(connection)
    own = {
        row["item"]
        for row in connection.execute(
            "SELECT DISTINCT item FROM event WHERE person = ? AND kind != 'returned'", (person,)
        )
    }
    back = _returned(connection)
    listed = []
    for number, item in store.items():
        of_item = everything.get(number, [])
        waiting = number in back and any(reading.at <= back[number] for reading in of_item)
        if number in decided or number in own or len(of_item) < item.wanted or waiting:
            continue
        questions = disputed_questions(store, of_item)
        if questions and item.gold is None:
            order = shuffled(number, of_item)
            listed.append(Dispute(number, order, questions, number in back))
    return listed


def disputed_questions(store: LabelStore, of_item: list[SubmittedReading]) -> tuple[Question, ...]:
    """Name the questions whose answers differ or of which one is unsure."""
    return tuple(
        question
        for question in store.settings.questions
        if len(values := {r.answers.value(question) for r in of_item}) > 1 or "unsure" in values
    )


def shuffled(item: int, of_item: list[SubmittedReading]) -> tuple[SubmittedReading, ...]:
    """Put readings into the order in which they are called A, B, ...: the item's own, always the
    same."""
    order = list(of_item)
    random.Random(item * 7919 + 1).shuffle(order)
    return tuple(order)


def adjudicate(
    store: LabelStore, who: ReadingId, answers: FormAnswers, reason: str, request: str
) -> int:
    """Decide an item, with a reason; return the event's number, the same for the same ``request``.

    Raises LabelRefused for a person who is no adjudicator or labelled it, for an item that is
    decided or not complete, for an unanswered question and for a missing reason.
    """
    reason = cleaned(reason).strip()
    person, item = who
    with store.writing() as connection:
        earlier = earlier_event(connection, f"adjudicate/{request}", who)
        if earlier is not None:
            return earlier
        _check(store, connection, person, item)
        if any(not answers.value(question) for question in store.settings.questions):
            raise LabelRefused("Not decided: answer every question.")
        if not reason:
            raise LabelRefused("Not decided: give a reason.")
        payload = {"answers": answers_payload(answers), "reason": reason}
        scoped = scoped_request(f"adjudicate/{request}", who)
        kind = EventKind.ADJUDICATED
        now = store.now()
        return append_event(
            connection, now, kind, payload, person=person, item=item, request=scoped
        )


def send_back(store: LabelStore, who: ReadingId, reason: str) -> None:
    """Send an item back to all who labelled it, once, with a reason. Raises LabelRefused as
    ``adjudicate``, and for the second time."""
    reason = cleaned(reason).strip()
    person, item = who
    with store.writing() as connection:
        _check(store, connection, person, item)
        if item in _returned(connection):
            raise LabelRefused("Not sent back: an item may be sent back once.")
        if not reason:
            raise LabelRefused("Not sent back: say what the annotators should look at.")
        payload = {"reason": reason}
        now = store.now()
        append_event(connection, now, EventKind.RETURNED, payload, person=person, item=item)


def _check(store: LabelStore, connection: sqlite3.Connection, person: int, item: int) -> None:
    role = connection.execute(
        "SELECT role FROM person WHERE id = ? AND active", (person,)
    ).fetchone()
    if role is None or role["role"] != "adjudicator":
        raise LabelRefused("Only an adjudicator decides: sign in as one.")
    counts = connection.execute(
        "SELECT count(*) FILTER (WHERE person = :person AND kind != 'returned') AS own,"
        " count(*) FILTER (WHERE kind = 'adjudicated') AS decided,"
        " count(DISTINCT person) FILTER (WHERE kind = 'submitted') AS labels,"
        " (SELECT wanted FROM item WHERE id = :item) AS wanted FROM event WHERE item = :item",
        {"person": person, "item": item},
    ).fetchone()
    if counts["own"] and not counts["decided"]:
        raise LabelRefused("Nobody adjudicates an item that they labelled or opened themselves.")
    if counts["decided"]:
        raise LabelRefused("This item is decided already.")
    if counts["wanted"] is None or counts["labels"] < counts["wanted"]:
        raise LabelRefused("This item has not all its labels yet.")


def _returned(connection: sqlite3.Connection) -> dict[int, int]:
    """Map every item that was sent back to when."""
    rows = connection.execute("SELECT item, at FROM event WHERE kind = 'returned'")
    return {row["item"]: row["at"] for row in rows}
