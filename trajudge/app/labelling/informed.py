"""The second stage: the verdicts on an item that was labelled, and whether they change the label.

It is an event of its own and never replaces what was labelled blind.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.records import ReadingId
from trajudge.annotations.labelling.submissions import (
    LabelRefused,
    OwnReading,
    own_reading,
    revise,
    show_verdicts,
)
from trajudge.app.labelling.forms import form_questions, read_answers
from trajudge.app.labelling.people import person_of
from trajudge.app.labelling.verdicts import FrameVerdicts, ShownVerdict
from trajudge.app.server.pages import form_fields, form_routes, page
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread

_NEXT = "/queue/next"


class InformedPages(NamedTuple):
    """What the handlers of the second stage share."""

    store: LabelStore
    verdicts: FrameVerdicts

    def routes(self) -> list[Route]:
        """Route the verdicts on an item, and the answer to them."""
        return form_routes("/queue/verdicts/{item:int}", self.show, self.write)

    async def show(self, request: Request, problem: str = "") -> Response:
        """Show the verdicts after the submission, which is recorded first."""
        person = person_of(self.store, request)
        who = ReadingId(person.id, int(request.path_params["item"]))
        reading, shown = await in_thread(self._show, who)
        if reading.revised:
            return RedirectResponse(_NEXT, 303)
        return page(
            request,
            "labelling/informed.html",
            422 if problem else 200,
            item=who.item,
            answers=reading.answers,
            verdicts=shown,
            questions=form_questions(self.store.settings.questions),
            request_key=secrets.token_hex(16),
            problem=problem,
        )

    async def write(self, request: Request) -> Response:
        """Keep the label or record the other one, and go on."""
        person = person_of(self.store, request)
        who = ReadingId(person.id, int(request.path_params["item"]))
        fields = await form_fields(request)
        questions = self.store.settings.questions
        try:
            answers = None
            if fields.get("action") == "revise":
                reading = await in_thread(self._reading, who)
                answers = read_answers(fields, questions, reading.answers)
                if any(not answers.value(question) for question in questions):
                    raise LabelRefused("Not revised: answer every question.")
            await in_thread(revise, self.store, who, answers, fields.get("request", ""))
        except LabelRefused as refused:
            return await self.show(request, str(refused))
        return RedirectResponse(_NEXT, 303)

    def _show(self, who: ReadingId) -> tuple[OwnReading, list[ShownVerdict]]:
        drawn = self.store.item(who.item)
        if drawn is None:
            raise PageError(404, "There is no such item in this queue.")
        shown = self.verdicts.of(drawn.key)
        try:
            show_verdicts(self.store, who, tuple(verdict.evaluator for verdict in shown))
        except LabelRefused as refused:
            raise PageError(404, str(refused)) from refused
        return self._reading(who), shown

    def _reading(self, who: ReadingId) -> OwnReading:
        return own_reading(self.store.reading(), who)
