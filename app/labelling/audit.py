"""The audit of the rule-based evaluator: where it is probably wrong, and what a person decided.

A decision is an event of the queue; together they are a register of task issues, as CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.labelling.chain import append_event
from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.people import people
from trajudge.annotations.labelling.records import EventKind, Person, QueueItem
from trajudge.annotations.labelling.submissions import LabelRefused, cleaned
from trajudge.app.labelling.people import adjudicator_of
from trajudge.app.labelling.verdicts import FrameVerdicts, ShownVerdict
from trajudge.app.pages.spreadsheets import no_formula
from trajudge.app.server.pages import form_fields, page
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread

RULINGS = {"rule_wrong": "rule wrong", "rule_right": "rule right", "task_broken": "task broken"}
_PAGE = "/queue/audit"


class RuleReview(NamedTuple):
    """What a person decided of the rule on a trajectory."""

    ruling: str
    note: str
    person: str


class AuditRow(NamedTuple):
    """An item by how probably the rule is wrong on it: one less the share of judges' votes that
    agree with it. ``against`` are the judges that contradict it."""

    number: int
    item: QueueItem
    rule: bool
    wrong: float
    against: list[ShownVerdict]
    review: RuleReview | None


class AuditPages(NamedTuple):
    """What the handlers of the audit share."""

    store: LabelStore
    verdicts: FrameVerdicts

    def routes(self) -> list[Route]:
        """Route the ranking, the decisions and the register."""
        return [
            Route(_PAGE, self.show),
            Route(_PAGE + ".csv", self.register),
            Route(_PAGE + "/{item:int}", self.write, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Rank the items by how probably the rule is wrong."""
        person = adjudicator_of(self.store, request)
        rows = await in_thread(self._rows)
        return page(
            request,
            "labelling/audit.html",
            rows=rows,
            rulings=RULINGS,
            may_decide=person.role == "adjudicator",
        )

    async def write(self, request: Request) -> Response:
        """Record what was decided of the rule."""
        person = adjudicator_of(self.store, request)
        fields = await form_fields(request)
        number = int(request.path_params["item"])
        await in_thread(self._write, person, number, fields)
        return RedirectResponse(f"{_PAGE}#item-{number}", 303)

    async def register(self, request: Request) -> Response:
        """Give the decisions as CSV."""
        adjudicator_of(self.store, request)
        text = await in_thread(self._register)
        headers = {"Content-Disposition": 'attachment; filename="task-issues.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    def _rows(self) -> list[AuditRow]:
        reviews = self._reviews()
        rows = []
        for number, item in self.store.items():
            rule, share = self.verdicts.rule(item.key), self.verdicts.judges_share(item.key)
            if rule is None or share is None or item.gold is not None:
                continue
            judges = [v for v in self.verdicts.of(item.key)[:-1] if v.success is not None]
            against = [verdict for verdict in judges if verdict.success != rule]
            wrong = 1 - share if rule else share
            rows.append(AuditRow(number, item, rule, wrong, against, reviews.get(number)))
        return sorted(rows, key=lambda row: (-row.wrong, row.number))

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
