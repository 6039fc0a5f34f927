"""Labels out of a queue and into one: our annotation format, the log of events, the draw.

``export_queue`` writes ``labels.jsonl`` (``trajudge-annotations``), ``events.jsonl`` and
``items.jsonl`` (each trajectory with its stratum and inclusion probability, hidden checks marked).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import orjson

from trajudge.annotations import store as annotation_store
from trajudge.annotations.labelling.adjudication import decisions, readings
from trajudge.annotations.labelling.database import (
    LabelStore,
    answered_events,
    append_event,
    read_events,
)
from trajudge.annotations.labelling.people import add_person, people, person_by_name
from trajudge.annotations.labelling.records import (
    QUESTIONS,
    Choice,
    EventKind,
    FormAnswers,
    QueueItem,
)
from trajudge.annotations.labelling.submissions import answers_payload
from trajudge.annotations.model import Annotation, Role
from trajudge.util.files import make_folder, write_bytes

Stage = Literal["blind", "informed"]

_EVENTS = "trajudge-label-events"
_CHOICES: dict[str, bool | None] = {"yes": True, "no": False, "unsure": None, "": None}


def queue_annotations(store: LabelStore, stage: Stage = "blind") -> list[Annotation]:
    """Return the labels of a queue by position, each with how its trajectory was drawn: the first
    reading is primary, later ones secondary, a decision adjudicated. Hidden checks, which were not
    drawn, are left out.

    ``informed`` gives for each reading what its second stage says, and leaves out readings that had
    none.
    """
    connection = store.reading()
    everything, decided = readings(connection), decisions(connection)
    revised = _revised(connection)
    names = {person.id: person.name for person in people(store)}
    annotations = []
    for number, item in store.items():
        if item.gold is not None:
            continue
        role = Role.PRIMARY
        for reading in everything.get(number, []):
            second = revised.get((number, reading.person))
            if stage == "informed" and second is None:
                continue
            seen: tuple[str, ...] = ()
            answers = reading.answers
            if stage == "informed" and second is not None:
                answers, seen = second
            name = names[reading.person]
            annotations.append(
                _annotation(item, name, role, answers).model_copy(
                    update={"blind": stage == "blind", "seen": seen}
                )
            )
            role = Role.SECONDARY
        if number in decided and role is not Role.PRIMARY:
            decision = decided[number]
            name = names[decision.person]
            annotations.append(_annotation(item, name, Role.ADJUDICATED, decision.answers))
    return annotations


def export_queue(store: LabelStore, folder: Path, stage: Stage = "blind") -> list[Path]:
    """Write the queue's labels, events and items into a folder; return the files. Raises OSError
    where they cannot be written."""
    make_folder(folder, "--out")
    labels, events, items = (folder / f"{name}.jsonl" for name in ("labels", "events", "items"))
    annotation_store.write(labels, queue_annotations(store, stage), store.settings.frame)
    write_bytes(events, b"".join(_event_lines(store)))
    write_bytes(items, b"".join(_item_lines(store.items())))
    return [labels, events, items]


def import_annotations(store: LabelStore, annotations: Iterable[Annotation]) -> tuple[int, int]:
    """Take labels from a file as submissions of the people whom it names; return how many were
    taken and how many were left out: of trajectories that are not in the queue, of people who
    labelled the trajectory already, above the wanted number, and adjudicated ones. A second import
    of the same labels changes nothing."""
    taken = left_out = 0
    for annotation in annotations:
        item = store.number_of(annotation.key)
        if item is None or annotation.role is Role.ADJUDICATED:
            left_out += 1
            continue
        name = annotation.annotator.strip() or "unknown"
        person = person_by_name(store, name) or add_person(store, name).person
        request = "import/" + sha256(annotation_store.annotation_line(annotation)).hexdigest()
        if _import(store, person.id, item, form_answers(annotation), request):
            taken += 1
        else:
            left_out += 1
    return taken, left_out


def form_answers(annotation: Annotation) -> FormAnswers:
    """Return an annotation as the answers of a form; what it left open becomes "unsure"."""
    choices = {name: _choice(getattr(annotation, name)) for name in QUESTIONS[:3]}
    optimality: Any = annotation.optimality or "unsure"
    return FormAnswers(
        **choices,
        optimality=optimality,
        unsure_why={q: why for q, why in annotation.unsure_why.items() if q in QUESTIONS},
        evidence=annotation.evidence,
        comment=annotation.comment or "",
        confidence=annotation.confidence,
        seconds=annotation.seconds,
        guideline_version=annotation.guideline_version,
    )


def _import(store: LabelStore, person: int, item: int, answers: FormAnswers, request: str) -> bool:
    payload = answers_payload(answers)
    with store.writing() as connection:
        counts = connection.execute(
            "SELECT count(*) FILTER (WHERE event.person = ?) AS own, count(DISTINCT event.person)"
            " AS labels, (SELECT wanted FROM item WHERE id = ?) AS wanted FROM event"
            " WHERE event.item = ? AND event.kind = 'submitted'",
            (person, item, item),
        ).fetchone()
        if counts["own"] or counts["labels"] >= counts["wanted"]:
            return False
        now = store.now()
        append_event(
            connection,
            now,
            EventKind.SUBMITTED,
            payload,
            person=person,
            item=item,
            request=request,
        )
    return True


def _annotation(
    item: QueueItem,
    annotator: str,
    role: Role,
    answers: FormAnswers,
) -> Annotation:
    optimality = answers.optimality
    return Annotation(
        key=item.key,
        raw_task_id=item.raw_task_id,
        annotator=annotator,
        role=role,
        success=_CHOICES[answers.value("success")],
        side_effect=_CHOICES[answers.value("side_effect")],
        repetition=_CHOICES[answers.value("repetition")],
        optimality=optimality if isinstance(optimality, int) else None,
        unsure_why=dict(answers.unsure_why),
        evidence=answers.evidence,
        comment=answers.comment or None,
        seconds=answers.seconds,
        confidence=answers.confidence,
        guideline_version=answers.guideline_version,
        blind=True,
        inclusion_probability=item.inclusion_probability,
        stratum=item.stratum or None,
    )


def _choice(value: bool | None) -> Choice:
    return "unsure" if value is None else "yes" if value else "no"


def _revised(
    connection: sqlite3.Connection,
) -> dict[tuple[int, int], tuple[FormAnswers, tuple[str, ...]]]:
    return {
        (row["item"], row["person"]): (answers, tuple(payload["seen"]))
        for row, answers, payload in answered_events(connection, EventKind.REVISED)
    }


def _event_lines(store: LabelStore) -> Iterator[bytes]:
    names = {person.id: person.name for person in people(store)}
    header = {"format": _EVENTS, "version": 1, "people": names}
    option = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    yield orjson.dumps(header, option=option)
    for event in read_events(store.reading()):
        yield orjson.dumps(event._asdict(), option=option)


def _item_lines(items: Sequence[tuple[int, QueueItem]]) -> Iterator[bytes]:
    for number, item in items:
        fields = item.model_dump(mode="json", exclude={"gold", "position"})
        fields = {"item": number, **fields, "hidden_check": item.gold is not None}
        yield orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
