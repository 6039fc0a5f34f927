"""The pages on which an adjudicator decides items whose labels differ or are unsure, and the page
of agreement, computed from the labels as they stand at each look.
"""

from __future__ import annotations

import secrets
from string import ascii_uppercase
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.queue import Dispute, FormAnswers, LabelQueue, LabelRefused, Person
from trajudge.app.labelling.blind import BLIND_TABS, blind_content, blind_request
from trajudge.app.labelling.forms import form_questions, read_answers
from trajudge.app.labelling.people import adjudicator_of
from trajudge.app.server.pages import form_fields, form_routes, json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.eval.labelling.agreement import queue_quality

_LIST = "/queue/adjudicate"


class AdjudicationPages(NamedTuple):
    """What the handlers of an adjudicator's pages share."""

    queue: LabelQueue
    access: TrajectoryAccess

    def routes(self) -> list[Route]:
        """Route the list of disputed items and the page of each."""
        return [
            Route(_LIST, self.show_list),
            *form_routes(_LIST + "/{item:int}", self.show, self.write),
        ]

    async def show_list(self, request: Request) -> Response:
        """List what this adjudicator may decide."""
        person = adjudicator_of(self.queue, request)
        listed = await in_thread(self.queue.disputes, person.id)
        return page(request, "labelling/disputes.html", disputes=listed)

    async def show(self, request: Request, problem: str = "") -> Response:
        """Show the labels of an item, without names, beside its evidence."""
        person = adjudicator_of(self.queue, request)
        dispute = await in_thread(self._dispute, request, person)
        drawn = self.queue.item(dispute.item)
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
            questions=form_questions(self.queue.settings.questions),
            empty=FormAnswers(),
            request_key=secrets.token_hex(16),
            may_decide=person.role == "adjudicator",
            problem=problem,
        )

    async def write(self, request: Request) -> Response:
        """Decide an item, or send it back."""
        person = adjudicator_of(self.queue, request)
        fields = await form_fields(request)
        item = int(request.path_params["item"])
        reason = fields.get("reason", "")
        try:
            if fields.get("action") == "back":
                await in_thread(self.queue.send_back, person.id, item, reason)
            else:
                answers = read_answers(fields, self.queue.settings.questions, FormAnswers())
                key = fields.get("request", "")
                decide = self.queue.adjudicate
                await in_thread(decide, person.id, item, answers, reason, key)
        except LabelRefused as refused:
            return await self.show(request, str(refused))
        return RedirectResponse(_LIST, 303)

    def _dispute(self, request: Request, person: Person) -> Dispute:
        number = int(request.path_params["item"])
        for dispute in self.queue.disputes(person.id):
            if dispute.item == number:
                return dispute
        raise PageError(404, "This item is not to be decided by you: go back to the list.")


class AgreementPage(NamedTuple):
    """What the handler of the page needs."""

    queue: LabelQueue

    def routes(self) -> list[Route]:
        """Route the page."""
        return [Route("/queue/agreement", self.show)]

    async def show(self, request: Request) -> Response:
        """Show how far the annotators agree now."""
        adjudicator_of(self.queue, request)
        quality = await in_thread(queue_quality, self.queue)
        if wants_json(request):
            return json_page(
                {
                    "agreements": [each.model_dump(mode="json") for each in quality.agreements],
                    "confusion": quality.confusion._asdict(),
                    "pairs": [pair._asdict() for pair in quality.pairs],
                    "people": [person._asdict() for person in quality.people],
                }
            )
        counts = await in_thread(self.queue.progress)
        return page(request, "labelling/agreement.html", quality=quality, counts=counts)
