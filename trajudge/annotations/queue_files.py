"""Export and import of a queue's labels: trajudge's annotation format, AgentRewardBench's columns,
and task files of Label Studio and Argilla.

Label Studio: tasks of ``data`` and ``annotations`` (labelstud.io/guide/task_format). Argilla:
records of ``fields`` and ``responses``, as ``Dataset.records.to_json`` writes them. Both contain
the goal, the steps as text and the answer of each item, without the agent's name, and the item's
number (``item``), by which labels are imported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import orjson
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label, Role
from trajudge.annotations.queue import QUESTIONS, FormAnswers, LabelQueue, Layout, QueueItem, Stage
from trajudge.annotations.sources import agentrewardbench
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, read_regular, write_bytes
from trajudge.util.validation import first_error

_CHOICES: dict[str, bool | None] = {"yes": True, "no": False, "unsure": None, "": None}
_OPTIONS = dict.fromkeys(QUESTIONS[:3], ("yes", "no", "unsure")) | {
    "optimality": ("1", "2", "3", "4", "unsure")
}
ImportedLabel = tuple[int | None, str, FormAnswers, bytes]
"""The number of the item (None: of no item of the queue), the annotator's name, the answers, and
bytes that identify the label."""
_LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


def queue_annotations(queue: LabelQueue, stage: Stage = "blind") -> list[Label]:
    """Return the labels of a queue by position, with their inclusion probabilities: the first
    reading is primary, later ones are secondary, a decision is adjudicated. Hidden checks, which
    were not drawn, are excluded.

    ``informed`` returns the second stage of each reading, and excludes readings without one.
    """
    readings, decisions, revised = queue.readings(), queue.decisions(), queue.revised()
    names = {person.id: person.name for person in queue.people()}
    annotations = []
    for number, item in queue.items():
        if item.gold is not None:
            continue
        role = Role.PRIMARY
        for reading in readings.get(number, []):
            answers: FormAnswers = reading.answers
            seen: tuple[str, ...] = ()
            if stage == "informed":
                if (number, reading.person) not in revised:
                    continue
                answers, seen = revised[number, reading.person]
            label = _annotation(item, names[reading.person], role, answers)
            annotations.append(label.model_copy(update={"blind": stage == "blind", "seen": seen}))
            role = Role.SECONDARY
        if number in decisions and role is not Role.PRIMARY:
            decision = decisions[number]
            name = names[decision.person]
            annotations.append(_annotation(item, name, Role.ADJUDICATED, decision.answers))
    return annotations


def export_queue(
    queue: LabelQueue, folder: Path, *, stage: Stage = "blind", layout: Layout = "trajudge"
) -> list[Path]:
    """Write ``labels.jsonl`` (``trajudge-annotations``), ``events.jsonl`` and ``items.jsonl`` (each
    trajectory with its stratum and inclusion probability, hidden checks marked) into a folder, and
    the files of another layout; return the files.

    Raises OSError if they cannot be written, UserError if the layout cannot express the labels, or
    trajectories cannot be read.
    """
    questions = queue.settings.questions
    if layout == "agentrewardbench" and set(questions) != set(QUESTIONS):
        raise UserError(
            f"{queue.folder}: asks only {', '.join(questions)}, and the columns of "
            "AgentRewardBench need all four questions: export with --layout trajudge"
        )
    make_folder(folder, "--out")
    labels = queue_annotations(queue, stage)
    files = [folder / f"{name}.jsonl" for name in ("labels", "events", "items")]
    annotation_store.write(files[0], labels, queue.settings.frame)
    names = {person.id: person.name for person in queue.people()}
    header = {"format": "trajudge-label-events", "version": 1, "people": names}
    events = (orjson.dumps(each, option=_LINE) for each in (header, *queue.events()))
    write_bytes(files[1], b"".join(events))
    write_bytes(files[2], b"".join(_item_line(*each) for each in queue.items()))
    if layout == "agentrewardbench":
        files.append(folder / "annotations.csv")
        opinions = [label for label in labels if label.role is not Role.ADJUDICATED]
        agentrewardbench.write_annotations(files[-1], opinions)
    elif layout == "label-studio":
        files += [folder / "label-studio.json", folder / "label-studio.xml"]
        tasks = [{"data": {"item": number, **text}} for number, text in _texts(queue)]
        write_bytes(files[-2], orjson.dumps(tasks, option=orjson.OPT_INDENT_2))
        write_bytes(files[-1], _label_studio_view(questions).encode())
    elif layout == "argilla":
        files.append(folder / "argilla.json")
        records = [
            {
                "id": str(number),
                "fields": text,
                "metadata": {"item": number},
                "suggestions": {},
                "responses": {},
                "vectors": {},
            }
            for number, text in _texts(queue)
        ]
        write_bytes(files[-1], orjson.dumps(records, option=orjson.OPT_INDENT_2))
    return files


def _item_line(number: int, item: QueueItem) -> bytes:
    fields = item.model_dump(mode="json", exclude={"gold", "position"})
    fields = {"item": number, **fields, "hidden_check": item.gold is not None}
    return orjson.dumps(fields, option=_LINE)


def _texts(queue: LabelQueue) -> list[tuple[int, dict[str, str]]]:
    """Return the number and text of every item, including hidden checks, by position. Raises
    UserError for a trajectory that the data do not have."""
    items = queue.items()
    wanted = {item.key for _, item in items}
    texts: dict[Any, dict[str, str]] = {}
    for spec in queue.settings.data:
        for run in open_source(spec, wanted.__contains__, Needs(answer=True)):
            if isinstance(run, Trajectory):
                texts.setdefault(run.key, _text(run))
    if absent := wanted - texts.keys():
        first = min(absent, key=lambda key: key.order)
        raise UserError(
            f"{queue.folder}: {len(absent)} trajectories, {first} for one, are not in "
            f"the data of the queue ({', '.join(queue.settings.data) or 'none'})"
        )
    return [(number, texts[item.key]) for number, item in items]


def _text(run: Trajectory) -> dict[str, str]:
    steps = [
        "\n".join(filter(None, (f"{step.index + 1}.", step.reasoning, step.action)))
        for step in run.steps
        if step.reasoning or step.action
    ]
    return {"goal": run.goal, "steps": "\n\n".join(steps), "answer": run.answer or ""}


def _label_studio_view(questions: Iterable[str]) -> str:
    """Return the labeling configuration for a project with these tasks."""
    texts = [
        f'  <Header value="{name}"/>\n  <Text name="{name}" value="${name}"/>'
        for name in ("goal", "steps", "answer")
    ]
    choices = []
    for question in questions:
        options = "".join(f"\n    <Choice value={quoteattr(o)}/>" for o in _OPTIONS[question])
        choices.append(
            f'  <Header value="{question}"/>\n'
            f'  <Choices name="{question}" toName="steps" choice="single" required="true">'
            f"{options}\n  </Choices>"
        )
    comment = '  <TextArea name="comment" toName="steps"/>'
    return "\n".join(["<View>", *texts, *choices, comment, "</View>"]) + "\n"


def import_labels(queue: LabelQueue, labels: Iterable[ImportedLabel]) -> tuple[int, int]:
    """Submit labels as the people whom they name; return the numbers of imported and of skipped
    ones (of no item, of people who labelled the item already, above the needed number).
    Importing the same labels again changes nothing."""
    taken = left_out = 0
    for item, name, answers, identity in labels:
        if item is None or queue.item(item) is None:
            left_out += 1
            continue
        person = queue.person(name) or queue.add_person(name)[0]
        request = "import/" + sha256(identity).hexdigest()
        if queue.import_label(person.id, item, answers, request):
            taken += 1
        else:
            left_out += 1
    return taken, left_out


def labels_of_annotations(
    queue: LabelQueue, annotations: Iterable[Label]
) -> Iterator[ImportedLabel]:
    """Yield annotations for ``import_labels``; adjudicated ones belong to no item. Missing
    answers become "unsure"."""
    for each in annotations:
        item = None if each.role is Role.ADJUDICATED else queue.number_of(each.key)
        values = {name: getattr(each, name) for name in QUESTIONS[:3]}
        optimality: Any = each.optimality or "unsure"
        answers = FormAnswers(
            **{name: "unsure" if v is None else "yes" if v else "no" for name, v in values.items()},
            optimality=optimality,
            unsure_why={q: why for q, why in each.unsure_why.items() if q in QUESTIONS},
            evidence=each.evidence,
            comment=each.comment or "",
            confidence=each.confidence,
            seconds=each.seconds,
            guideline_version=each.guideline_version,
        )
        name = each.annotator.strip() or "unknown"
        yield item, name, answers, annotation_store.annotation_line(each)


class _Result(BaseModel):
    from_name: str
    value: dict[str, Any]


class _StudioAnnotation(BaseModel):
    result: list[_Result]
    completed_by: int | dict[str, Any] | None = None
    was_cancelled: bool = False
    lead_time: float | None = Field(default=None, ge=0)


class _StudioTask(BaseModel):
    data: dict[str, Any]
    annotations: list[_StudioAnnotation] = Field(default_factory=list)


class _ArgillaRecord(BaseModel):
    id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    responses: dict[str, list[dict[str, Any]]] = Field(default_factory=dict)


def read_label_studio(path: Path) -> Iterator[ImportedLabel]:
    """Yield the labels of a JSON export of Label Studio, except cancelled annotations. Raises
    UserError for another file."""
    for task in _decode(path, list[_StudioTask], "a JSON export of Label Studio"):
        for each in task.annotations:
            if each.was_cancelled:
                continue
            values: dict[str, Any] = {"seconds": each.lead_time}
            for result in each.result:
                chosen = result.value.get("choices") or result.value.get("text") or [""]
                text = chosen if isinstance(chosen, str) else "\n".join(map(str, chosen))
                values[result.from_name] = text
            who = each.completed_by
            name = str(who.get("email") or who.get("id") if isinstance(who, dict) else who)
            yield _label(path, task.data.get("item"), name, values)


def read_argilla(path: Path) -> Iterator[ImportedLabel]:
    """Yield the labels of a JSON export of Argilla (``dataset.records.to_json``), submitted ones
    if it has a status. Raises UserError for another file."""
    for record in _decode(path, list[_ArgillaRecord], "a JSON export of Argilla"):
        by_user: dict[str, dict[str, Any]] = defaultdict(dict)
        for question, responses in record.responses.items():
            for response in responses:
                if response.get("status", "submitted") == "submitted":
                    by_user[str(response.get("user_id"))][question] = response.get("value")
        for user, values in by_user.items():
            yield _label(path, record.metadata.get("item", record.id), user, values)


def _label(path: Path, item: object, name: str, values: dict[str, Any]) -> ImportedLabel:
    known = {question: values[question] for question in _OPTIONS if values.get(question)}
    if str(known.get("optimality", "")).isdecimal():
        known["optimality"] = int(known["optimality"])
    known |= {"comment": values.get("comment") or "", "seconds": values.get("seconds")}
    try:
        answers = FormAnswers.model_validate(known)
    except ValidationError as error:
        raise UserError(f"{path}: item {item}: {first_error(error, 'a label')}") from error
    number = int(str(item)) if str(item).isdecimal() else None
    return number, name, answers, orjson.dumps([number, name, answers.payload])


def _decode(path: Path, kind: Any, described: str) -> Any:
    try:
        return TypeAdapter(kind).validate_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: is not {described} ({error!s:.200}): export the project as JSON"
        ) from error


def _annotation(item: QueueItem, annotator: str, role: Role, answers: FormAnswers) -> Label:
    optimality = answers.optimality
    return Label(
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
