"""What an annotator does with an item: drafts, the submission, the second stage, skip and reopen.

Every change is an event. A submission carries a request key, so that one sent twice is one event;
each writing names the version that it was based on, so that two open pages do not overwrite each
other.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

import orjson

from trajudge.annotations.labelling.database import LabelStore, append_event
from trajudge.annotations.labelling.offers import hold_lease, is_reopened, may_label
from trajudge.annotations.labelling.records import (
    TEXT_LIMIT,
    EventKind,
    FormAnswers,
    ReadingId,
)

REOPEN_MILLISECONDS = 5 * 60 * 1000
_NOT_YOURS = "This item is not yours to label any more: it was finished or given to others."


class LabelRefused(Exception):
    """What the store does not take, in a sentence for the annotator."""


class LabelConflict(LabelRefused):
    """The reading was changed by another page since; ``version`` and ``answers`` stand now."""

    def __init__(self, version: int, answers: FormAnswers) -> None:
        super().__init__(
            "This item was changed in another window: reload to see what stands there now."
        )
        self.version = version
        self.answers = answers


class OwnReading(NamedTuple):
    """What a person's form held last: its version (0: nothing yet), answers, and whether it is
    submitted. ``shown`` is whether the verdicts were shown to them, ``revised`` whether they
    answered then."""

    version: int
    answers: FormAnswers
    submitted: bool
    shown: bool
    revised: bool


def own_reading(connection: sqlite3.Connection, who: ReadingId) -> OwnReading:
    """Read what stands of a person's reading of an item."""
    person, item = who
    rows = connection.execute(
        "SELECT id, kind, payload FROM event WHERE item = ? AND person = ? ORDER BY id",
        (item, person),
    ).fetchall()
    version, answers = 0, FormAnswers()
    for row in rows:
        if row["kind"] in ("draft", "submitted"):
            version, answers = row["id"], FormAnswers.model_validate_json(row["payload"])
    kinds = {row["kind"] for row in rows}
    submitted = "submitted" in kinds and not is_reopened(connection, person, item)
    return OwnReading(version, answers, submitted, "verdicts_shown" in kinds, "revised" in kinds)


def save_draft(store: LabelStore, who: ReadingId, answers: FormAnswers, version: int) -> int:
    """Keep what a form holds and renew the lease; return the new version.

    Raises LabelConflict where ``version`` is not what stands, LabelRefused where the person may not
    label the item now.
    """
    now = store.now()
    with store.writing() as connection:
        standing = _checked(connection, now, who, version)
        hold_lease(connection, now, *who)
        if standing.version and standing.answers == answers:
            return standing.version
        return append_event(
            connection, now, EventKind.DRAFT, answers_payload(answers), **who._asdict()
        )


def submit(
    store: LabelStore, who: ReadingId, answers: FormAnswers, version: int, request: str
) -> int:
    """Submit a reading; return its version. The same ``request`` again returns the same version.

    When it returns, the submission outlasts any failure. Raises LabelRefused for an unanswered
    question or an item that the person may not label, LabelConflict as ``save_draft``.
    """
    now = store.now()
    with store.writing() as connection:
        earlier = earlier_event(connection, request, who)
        if earlier is not None:
            return earlier
        _checked(connection, now, who, version)
        open_questions = [q for q in store.settings.questions if not answers.value(q)]
        if open_questions:
            names = ", ".join(question.replace("_", " ") for question in open_questions)
            raise LabelRefused(f"Not submitted: {names} not answered yet.")
        connection.execute("DELETE FROM lease WHERE item = ? AND person = ?", who[::-1])
        scoped = scoped_request(request, who)
        kind = EventKind.SUBMITTED
        return append_event(
            connection, now, kind, answers_payload(answers), **who._asdict(), request=scoped
        )


def skip(store: LabelStore, who: ReadingId, reason: str, request: str) -> None:
    """Skip an item for good, with a reason; others get it. Raises LabelRefused without one."""
    _give_up(store, EventKind.SKIPPED, who, reason, request)


def release(store: LabelStore, who: ReadingId, request: str) -> None:
    """Give an item back, for others. Raises LabelRefused where the person does not hold it."""
    _give_up(store, EventKind.RELEASED, who, "given back", request)


def reopen(store: LabelStore, person: int) -> int | None:
    """Open the person's last submission again, if it is less than five minutes old; return the
    item. None where there is none, or where the verdicts on it were shown or it was adjudicated:
    what was labelled blind is then no longer open."""
    now = store.now()
    with store.writing() as connection:
        last = connection.execute(
            "SELECT item, at FROM event WHERE person = ? AND kind = 'submitted'"
            " ORDER BY id DESC LIMIT 1",
            (person,),
        ).fetchone()
        if last is None or now - last["at"] > REOPEN_MILLISECONDS:
            return None
        item = int(last["item"])
        settled = connection.execute(
            "SELECT 1 FROM event WHERE item = ? AND (kind = 'adjudicated'"
            " OR person = ? AND kind = 'verdicts_shown') LIMIT 1",
            (item, person),
        ).fetchone()
        if settled is not None:
            return None
        if not is_reopened(connection, person, item):
            append_event(connection, now, EventKind.REOPENED, {}, person=person, item=item)
        hold_lease(connection, now, person, item)
        return item


def show_verdicts(store: LabelStore, who: ReadingId, seen: tuple[str, ...]) -> None:
    """Record that the verdicts on an item are shown to a person from now on, once.

    Raises LabelRefused before the blind label was submitted, or in a queue without this stage.
    """
    now = store.now()
    with store.writing() as connection:
        standing = own_reading(connection, who)
        if not store.settings.informed or not standing.submitted:
            raise LabelRefused("The verdicts are shown only after a submission.")
        if not standing.shown:
            payload = {"seen": list(seen)}
            append_event(connection, now, EventKind.VERDICTS_SHOWN, payload, **who._asdict())


def revise(store: LabelStore, who: ReadingId, answers: FormAnswers | None, request: str) -> int:
    """Record the second stage, once: other answers, or None to keep those of the first stage. It
    never replaces the blind label. Raises LabelRefused where no verdict was shown."""
    now = store.now()
    with store.writing() as connection:
        earlier = earlier_event(connection, request, who)
        if earlier is not None:
            return earlier
        standing = own_reading(connection, who)
        if not standing.shown or standing.revised:
            raise LabelRefused("The second stage is answered once, after the verdicts were shown.")
        shown = connection.execute(
            "SELECT json_extract(payload, '$.seen') AS seen FROM event WHERE item = ?"
            " AND person = ? AND kind = 'verdicts_shown'",
            (who.item, who.person),
        ).fetchone()
        kept = answers is None or answers == standing.answers
        payload = {
            "kept": kept,
            "seen": orjson.loads(shown["seen"]),
            "answers": answers_payload(standing.answers if answers is None else answers),
        }
        return append_event(
            connection,
            now,
            EventKind.REVISED,
            payload,
            **who._asdict(),
            request=scoped_request(request, who),
        )


def comment(store: LabelStore, who: ReadingId, text: str) -> None:
    """Write a remark on an item beside the labels."""
    payload = {"text": cleaned(text)}
    with store.writing() as connection:
        append_event(connection, store.now(), EventKind.COMMENTED, payload, **who._asdict())


def guideline_shown(store: LabelStore, person: int, version: str) -> None:
    """Record which version of the guidelines a person was shown, once for each."""
    with store.writing() as connection:
        before = connection.execute(
            "SELECT 1 FROM event WHERE person = ? AND kind = 'guideline_shown'"
            " AND json_extract(payload, '$.version') = ? LIMIT 1",
            (person, version),
        ).fetchone()
        if before is None:
            kind = EventKind.GUIDELINE_SHOWN
            append_event(connection, store.now(), kind, {"version": version}, person=person)


def cleaned(text: str) -> str:
    """Return a text of at most ``TEXT_LIMIT`` characters that every encoding has. Raises
    LabelRefused for a longer one."""
    if len(text) > TEXT_LIMIT:
        raise LabelRefused(f"Not saved: a text is longer than {TEXT_LIMIT:,} characters.")
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _give_up(store: LabelStore, kind: EventKind, who: ReadingId, reason: str, request: str) -> None:
    reason = cleaned(reason).strip()
    if not reason:
        raise LabelRefused("Not skipped: say why, in a few words.")
    now = store.now()
    with store.writing() as connection:
        if earlier_event(connection, request, who) is not None:
            return
        standing = own_reading(connection, who)
        if not may_label(connection, now, *who) or standing.submitted:
            raise LabelRefused(_NOT_YOURS)
        connection.execute("DELETE FROM lease WHERE item = ? AND person = ?", who[::-1])
        scoped = scoped_request(request, who)
        append_event(connection, now, kind, {"reason": reason}, **who._asdict(), request=scoped)


def _checked(connection: sqlite3.Connection, now: int, who: ReadingId, version: int) -> OwnReading:
    standing = own_reading(connection, who)
    if not may_label(connection, now, *who):
        raise LabelRefused(_NOT_YOURS)
    if standing.version != version:
        raise LabelConflict(standing.version, standing.answers)
    return standing


def earlier_event(connection: sqlite3.Connection, request: str, who: ReadingId) -> int | None:
    """Find the event that this request wrote already."""
    row = connection.execute(
        "SELECT id FROM event WHERE request = ?", (scoped_request(request, who),)
    ).fetchone()
    return None if row is None else int(row["id"])


def scoped_request(request: str, who: ReadingId) -> str:
    """Tie a request key to who sent it, so that nobody meets another's."""
    return f"{who.person}/{who.item}/{cleaned(request)}"


def answers_payload(answers: FormAnswers) -> dict[str, Any]:
    """Return answers as an event holds them."""
    return answers.model_dump(mode="json", exclude_defaults=True)
