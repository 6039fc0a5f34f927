"""The pages on which an adjudicator decides items whose labels differ or are unsure."""

from __future__ import annotations

import secrets
from string import ascii_uppercase
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.labelling.adjudication import (
    Dispute,
    adjudicate,
    disputes,
    send_back,
)
from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.records import FormAnswers, Person, ReadingId
from trajudge.annotations.labelling.submissions import LabelRefused
from trajudge.app.labelling.blind import BLIND_TABS, blind_content, blind_request
from trajudge.app.labelling.forms import form_questions, read_answers
from trajudge.app.labelling.people import adjudicator_of
from trajudge.app.server.pages import form_fields, form_routes, page
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of
from trajudge.app.trajectories.access import TrajectoryAccess

_LIST = "/queue/adjudicate"


class AdjudicationPages(NamedTuple):
    """What the handlers of an adjudicator's pages share."""

    store: LabelStore
    access: TrajectoryAccess

    def routes(self) -> list[Route]:
        """Route the list of disputed items and the page of each."""
        return [
            Route(_LIST, self.show_list),
            *form_routes(_LIST + "/{item:int}", self.show, self.write),
        ]

    async def show_list(self, request: Request) -> Response:
        """List what this adjudicator may decide."""
        person = adjudicator_of(self.store, request)
        listed = await in_thread(disputes, self.store, person.id)
        return page(request, "labelling/disputes.html", disputes=listed)

    async def show(self, request: Request, problem: str = "") -> Response:
        """Show the labels of an item, without names, beside its evidence."""
        person = adjudicator_of(self.store, request)
        dispute = await in_thread(self._dispute, request, person)
        drawn = self.store.item(dispute.item)
        if drawn is None:
            raise PageError(404, "There is no such item in this queue.")
        chosen = blind_request(dict(request.query_params))
        path = ("queue", "adjudicate", dispute.item)
        content = await in_thread(
            blind_content, self.access, workspace_of(request), drawn, path, chosen
        )
        return page(
            request,
            "labelling/adjudicate.html",
            422 if problem else 200,
            view=content,
            tabs=BLIND_TABS,
            dispute=dispute,
            letters=ascii_uppercase,
            questions=form_questions(self.store.settings.questions),
            empty=FormAnswers(),
            request_key=secrets.token_hex(16),
            may_decide=person.role == "adjudicator",
            problem=problem,
        )

    async def write(self, request: Request) -> Response:
        """Decide an item, or send it back."""
        person = adjudicator_of(self.store, request)
        fields = await form_fields(request)
        who = ReadingId(person.id, int(request.path_params["item"]))
        reason = fields.get("reason", "")
        try:
            if fields.get("action") == "back":
                await in_thread(send_back, self.store, who, reason)
            else:
                answers = read_answers(fields, self.store.settings.questions, FormAnswers())
                key = fields.get("request", "")
                await in_thread(adjudicate, self.store, who, answers, reason, key)
        except LabelRefused as refused:
            return await self.show(request, str(refused))
        return RedirectResponse(_LIST, 303)

    def _dispute(self, request: Request, person: Person) -> Dispute:
        number = int(request.path_params["item"])
        for dispute in disputes(self.store, person.id):
            if dispute.item == number:
                return dispute
        raise PageError(404, "This item is not to be decided by you: go back to the list.")
