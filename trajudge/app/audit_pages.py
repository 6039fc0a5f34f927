"""The audit of the rule-based evaluator: where it is probably wrong, and what a person decided.

A decision is an event of the queue; together they are a register of task issues, as CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations.model import Labels
from trajudge.annotations.queue import LabelQueue, LabelRefused, Person, QueueItem, cleaned
from trajudge.annotations.queue_files import queue_annotations
from trajudge.app.label_forms import adjudicator_of
from trajudge.app.library import TrajectoryAbsent
from trajudge.app.rendering import no_formula
from trajudge.app.trajectory_page import (
    TABS,
    StepContent,
    TrajectoryAccess,
    step_linker,
    step_request,
)
from trajudge.app.web import PageError, form_fields, form_routes, in_thread, page
from trajudge.app.workspace import workspace_of
from trajudge.eval.labelling.frame import RULE, Frame, open_frame, vote_share
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, utf8


class ShownVerdict(NamedTuple):
    """An evaluator's verdict on a trajectory, None where it gave none, and its score."""

    evaluator: str
    success: bool | None
    score: float | None


class FrameVerdicts:
    """The verdicts of a queue's frame, read when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: tuple[Frame, Mapping[TrajectoryKey, int]] | None = None

    def _frame(self) -> tuple[Frame, Mapping[TrajectoryKey, int]]:
        if self._read is None:
            frame = open_frame(self._folder)
            self._read = frame, {key: row for row, key in enumerate(frame.keys)}
        return self._read

    def of(self, key: TrajectoryKey) -> list[ShownVerdict]:
        """List what every evaluator said; empty for a trajectory that is not in the frame."""
        frame, rows = self._frame()
        if key not in rows:
            return []
        row = rows[key]
        votes, scores = frame.votes[row], frame.scores[row]
        return [
            ShownVerdict(
                name,
                None if np.isnan(votes[place]) else bool(votes[place]),
                None if name == RULE or np.isnan(scores[place]) else float(scores[place]),
            )
            for place, name in enumerate(frame.evaluators)
        ]

    def rule(self, key: TrajectoryKey) -> bool | None:
        """Return the rule's verdict, None where there is none."""
        frame, rows = self._frame()
        value = frame.rule[rows[key]] if key in rows else np.nan
        return None if np.isnan(value) else bool(value)

    def judges_share(self, key: TrajectoryKey) -> float | None:
        """Return the share of success among the judges' votes, with one vote of one half added."""
        frame, rows = self._frame()
        if key not in rows:
            return None
        return float(vote_share(frame.verdicts[rows[key]][None])[0])

    def learned(self, labels: Labels) -> Mapping[TrajectoryKey, float]:
        """Predict the success of every trajectory of the frame by a regression on labels; empty
        where there are too few."""
        frame, rows = self._frame()
        chances = frame.learned_probability(labels)
        return {} if chances is None else {key: float(chances[row]) for key, row in rows.items()}


_MAX_BYTES = 256 * 2**20
RULINGS = {"rule_wrong": "rule wrong", "rule_right": "rule right", "task_broken": "task broken"}
_PARTS = ("queue", "audit")
_PAGE = "/" + "/".join(_PARTS)


class RuleText(NamedTuple):
    """The ``intent`` of the task as the file words it, and its specification as indented JSON
    (``eval``), without the fields that are empty."""

    intent: str
    specification: str


class _Task(msgspec.Struct):
    task_id: int | str
    eval: Any
    intent: str = ""


def read_rule_texts(path: Path) -> Mapping[str, RuleText]:
    """Read a task file of WebArena, WebArena Verified or another benchmark in that layout: a list
    of objects with ``task_id`` and ``eval``. By task id; a number is a task of WebArena.

    Raises UserError for another file.
    """
    try:
        tasks = msgspec.json.decode(utf8(read_regular(path, _MAX_BYTES), path), type=list[_Task])
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"--tasks {path}: is not a list of tasks with task_id and eval ({error})"
        ) from error
    texts = {}
    for task in tasks:
        number = isinstance(task.task_id, int)
        name = f"webarena.{task.task_id}" if number else str(task.task_id)
        specification = orjson.dumps(_without_empty(task.eval), option=orjson.OPT_INDENT_2)
        texts[name] = RuleText(task.intent, specification.decode())
    return texts


def _without_empty(value: Any) -> Any:
    """Leave out empty texts, lists and objects."""
    if isinstance(value, dict):
        kept = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in ("", [], {}, None)}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


class WeighedVerdict(NamedTuple):
    """A verdict, and of the labelled trajectories on which this evaluator said the same, how many
    labels agreed: ``right`` of ``labelled``."""

    verdict: ShownVerdict
    right: int
    labelled: int


class RankedItem(NamedTuple):
    """An item with its ``rank`` from 1; ``wrong`` is the probability that the rule is wrong.
    ``against`` are the judges that contradict it, ``with_it`` those that agree."""

    rank: int
    number: int
    item: QueueItem
    rule: bool
    wrong: float
    against: tuple[WeighedVerdict, ...]
    with_it: tuple[WeighedVerdict, ...]


class RuleRanking(NamedTuple):
    """``labels``: so many labels the probabilities were learned from; 0: too few were there, and
    they are shares of the judges' votes."""

    items: list[RankedItem]
    labels: int


def known_labels(queue: LabelQueue) -> Labels:
    """Read the labels that a queue was built with, and its own, which come first. Raises UserError
    for those that cannot be read."""
    spec = queue.settings.annotations
    built = primary_labels(open_annotations(spec)) if spec else {}
    return {**built, **primary_labels(queue_annotations(queue))}


def rank_items(queue: LabelQueue, verdicts: FrameVerdicts) -> RuleRanking:
    """Rank the items on which the rule said something, hidden checks left out. Raises UserError as
    ``known_labels`` does."""
    labels = known_labels(queue)
    learned = verdicts.learned(labels)
    counts = _reliability(verdicts, labels)
    rows = []
    for number, item in queue.items():
        rule, share = verdicts.rule(item.key), verdicts.judges_share(item.key)
        if rule is None or share is None or item.gold is not None:
            continue
        success = learned.get(item.key, share) if learned else share
        judges = [v for v in verdicts.of(item.key)[:-1] if v.success is not None]
        weighed = [_weighed(each, counts) for each in judges]
        rows.append(
            RankedItem(
                0,
                number,
                item,
                rule,
                1 - success if rule else success,
                tuple(each for each in weighed if each.verdict.success != rule),
                tuple(each for each in weighed if each.verdict.success == rule),
            )
        )
    rows.sort(key=lambda row: (-row.wrong, row.number))
    ranked = [row._replace(rank=rank) for rank, row in enumerate(rows, start=1)]
    decided = sum(labels[key].success is not None for key in learned if key in labels)
    return RuleRanking(ranked, decided)


_Counts = Mapping[tuple[str, bool], tuple[int, int]]


def _reliability(verdicts: FrameVerdicts, labels: Labels) -> _Counts:
    """Count, by evaluator and what it said, the labels that agreed and all labels."""
    counts: dict[tuple[str, bool], tuple[int, int]] = {}
    for key, label in labels.items():
        for each in verdicts.of(key) if label.success is not None else ():
            if each.success is not None:
                right, labelled = counts.get((each.evaluator, each.success), (0, 0))
                agrees = each.success == label.success
                counts[each.evaluator, each.success] = right + agrees, labelled + 1
    return counts


def _weighed(verdict: ShownVerdict, counts: _Counts) -> WeighedVerdict:
    right, labelled = counts.get((verdict.evaluator, bool(verdict.success)), (0, 0))
    return WeighedVerdict(verdict, right, labelled)


class RuleReview(NamedTuple):
    """What a person decided of the rule on a trajectory."""

    ruling: str
    note: str
    person: str


class AuditPages(NamedTuple):
    """What the handlers of the audit share."""

    queue: LabelQueue
    verdicts: FrameVerdicts
    access: TrajectoryAccess
    rules: Mapping[str, RuleText]

    def routes(self) -> list[Route]:
        """Route the ranking, the page of each item, the decisions and the register."""
        return [
            Route(_PAGE, self.show),
            Route(_PAGE + ".csv", self.register),
            *form_routes(_PAGE + "/{item:int}", self.show_item, self.write),
        ]

    async def show(self, request: Request) -> Response:
        """Rank the items by how probably the rule is wrong."""
        adjudicator_of(self.queue, request)
        ranking = await in_thread(rank_items, self.queue, self.verdicts)
        library = self.access.library(workspace_of(request))
        goals = await in_thread(library.goals, [row.item.key for row in ranking.items])
        return page(
            request,
            "labelling/audit.html",
            ranking=ranking,
            goals=goals,
            reviews=await in_thread(self._reviews),
            rulings=RULINGS,
        )

    async def show_item(self, request: Request) -> Response:
        """Show what the rule demands beside the evidence."""
        person = adjudicator_of(self.queue, request)
        ranking = await in_thread(rank_items, self.queue, self.verdicts)
        number = int(request.path_params["item"])
        row = next((each for each in ranking.items if each.number == number), None)
        if row is None:
            raise PageError(404, "The rule says nothing of this item: go back to the audit.")
        view, absent = await in_thread(self._evidence, request, row)
        return page(
            request,
            "labelling/audit_item.html",
            row=row,
            ranking=ranking,
            following=next((e for e in ranking.items if e.rank == row.rank + 1), None),
            view=view,
            absent=absent,
            tabs=TABS,
            text=self.rules.get(row.item.key.task_id),
            review=(await in_thread(self._reviews)).get(number),
            rulings=RULINGS,
            may_decide=person.role == "adjudicator",
        )

    def _evidence(self, request: Request, row: RankedItem) -> tuple[StepContent | None, str]:
        """Open the trajectory, or say why there is none; nothing of it is hidden here."""
        asked = step_request(request.query_params)
        asked = asked if asked.tab in TABS else asked._replace(tab="action")
        try:
            opened = self.access.library(workspace_of(request)).open(row.item.key)
        except TrajectoryAbsent as absent:
            return None, str(absent)
        content = self.access.summaries.content(opened, asked)
        link = step_linker((*_PARTS, row.number), content.request)
        return content._replace(link=link), ""

    async def write(self, request: Request) -> Response:
        """Record what was decided of the rule."""
        person = adjudicator_of(self.queue, request)
        fields = await form_fields(request)
        number = int(request.path_params["item"])
        await in_thread(self._write, person, number, fields)
        return RedirectResponse(f"{_PAGE}/{number}", 303)

    async def register(self, request: Request) -> Response:
        """Give the decisions as CSV."""
        adjudicator_of(self.queue, request)
        text = await in_thread(self._register)
        headers = {"Content-Disposition": 'attachment; filename="task-issues.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    def _reviews(self) -> dict[int, RuleReview]:
        names = {person.id: person.name for person in self.queue.people()}
        reviews = {}
        for event in self.queue.events("reviewed"):
            payload = orjson.loads(event["payload"])
            name = names[event["person"]]
            reviews[event["item"]] = RuleReview(payload["ruling"], payload["note"], name)
        return reviews

    def _write(self, person: Person, number: int, fields: Mapping[str, str]) -> None:
        ruling = fields.get("ruling", "")
        if person.role != "adjudicator" or ruling not in RULINGS:
            raise PageError(422, "Not saved: an adjudicator chooses rule wrong, right or broken.")
        if self.queue.item(number) is None:
            raise PageError(404, "There is no such item in this queue.")
        try:
            payload = {"ruling": ruling, "note": cleaned(fields.get("note", "")).strip()}
        except LabelRefused as refused:
            raise PageError(422, str(refused)) from refused
        self.queue.record("reviewed", payload, person=person.id, item=number)

    def _register(self) -> str:
        table = io.StringIO()
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(
            ("benchmark", "task_id", "agent", "attempt", "rule", "ruling", "note", "person")
        )
        reviews = self._reviews()
        for number, item in self.queue.items():
            if number in reviews:
                key, review = item.key, reviews[number]
                rule = {True: "yes", False: "no", None: ""}[self.verdicts.rule(key)]
                cells = (key.benchmark, key.task_id, key.agent, key.attempt, rule, *review)
                rows.writerow([no_formula(str(cell)) for cell in cells])
        return table.getvalue()
