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
import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.labelling.database import LabelStore, append_event
from trajudge.annotations.labelling.people import people
from trajudge.annotations.labelling.records import EventKind, Person
from trajudge.annotations.labelling.submissions import LabelRefused, cleaned
from trajudge.app.labelling.people import adjudicator_of
from trajudge.app.labelling.rule_ranking import RankedItem, rank_items
from trajudge.app.labelling.verdicts import FrameVerdicts
from trajudge.app.pages.spreadsheets import no_formula
from trajudge.app.server.pages import form_fields, form_routes, page
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.content import (
    TABS,
    StepContent,
    step_linker,
    step_request,
)
from trajudge.app.trajectories.library import TrajectoryAbsent
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, utf8

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


class RuleReview(NamedTuple):
    """What a person decided of the rule on a trajectory."""

    ruling: str
    note: str
    person: str


class AuditPages(NamedTuple):
    """What the handlers of the audit share."""

    store: LabelStore
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
        adjudicator_of(self.store, request)
        ranking = await in_thread(rank_items, self.store, self.verdicts)
        return page(
            request,
            "labelling/audit.html",
            ranking=ranking,
            reviews=await in_thread(self._reviews),
            rulings=RULINGS,
        )

    async def show_item(self, request: Request) -> Response:
        """Show what the rule demands beside the evidence."""
        person = adjudicator_of(self.store, request)
        ranking = await in_thread(rank_items, self.store, self.verdicts)
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
        person = adjudicator_of(self.store, request)
        fields = await form_fields(request)
        number = int(request.path_params["item"])
        await in_thread(self._write, person, number, fields)
        return RedirectResponse(f"{_PAGE}/{number}", 303)

    async def register(self, request: Request) -> Response:
        """Give the decisions as CSV."""
        adjudicator_of(self.store, request)
        text = await in_thread(self._register)
        headers = {"Content-Disposition": 'attachment; filename="task-issues.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    def _reviews(self) -> dict[int, RuleReview]:
        names = {person.id: person.name for person in people(self.store)}
        rows = self.store.reading().execute(
            "SELECT item, person, payload FROM event WHERE kind = 'reviewed' ORDER BY id"
        )
        reviews = {}
        for row in rows:
            payload = orjson.loads(row["payload"])
            name = names[row["person"]]
            reviews[row["item"]] = RuleReview(payload["ruling"], payload["note"], name)
        return reviews

    def _write(self, person: Person, number: int, fields: Mapping[str, str]) -> None:
        ruling = fields.get("ruling", "")
        if person.role != "adjudicator" or ruling not in RULINGS:
            raise PageError(422, "Not saved: an adjudicator chooses rule wrong, right or broken.")
        if self.store.item(number) is None:
            raise PageError(404, "There is no such item in this queue.")
        try:
            payload = {"ruling": ruling, "note": cleaned(fields.get("note", "")).strip()}
        except LabelRefused as refused:
            raise PageError(422, str(refused)) from refused
        kind = EventKind.REVIEWED
        with self.store.writing() as connection:
            now = self.store.now()
            append_event(connection, now, kind, payload, person=person.id, item=number)

    def _register(self) -> str:
        table = io.StringIO()
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(
            ("benchmark", "task_id", "agent", "attempt", "rule", "ruling", "note", "person")
        )
        reviews = self._reviews()
        for number, item in self.store.items():
            if number in reviews:
                key, review = item.key, reviews[number]
                rule = {True: "yes", False: "no", None: ""}[self.verdicts.rule(key)]
                cells = (key.benchmark, key.task_id, key.agent, key.attempt, rule, *review)
                rows.writerow([no_formula(str(cell)) for cell in cells])
        return table.getvalue()
