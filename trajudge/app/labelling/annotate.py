"""The pages on which an item is labelled: blind, and then, where the queue asks for it, with the
verdicts; the second answer is an event of its own and never replaces what was labelled blind.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.queue import (
    LabelConflict,
    LabelQueue,
    LabelRefused,
    OwnReading,
    QueueItem,
)
from trajudge.app.labelling.blind import BLIND_TABS, blind_content, blind_request
from trajudge.app.labelling.forms import (
    MARK_KINDS,
    form_questions,
    marked,
    read_answers,
    small_number,
    unmarked,
)
from trajudge.app.labelling.guidelines import guideline_version, read_guidelines
from trajudge.app.labelling.people import person_of
from trajudge.app.labelling.verdicts import FrameVerdicts, ShownVerdict
from trajudge.app.server.pages import form_fields, form_routes, json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.content import StepContent

_NEXT = "/queue/next"
_KIND_OF_TAB = {"action": "action", "tree": "axtree", "answer": "answer"}


class AnnotationPages(NamedTuple):
    """What the handlers of an annotator's pages share."""

    queue: LabelQueue
    access: TrajectoryAccess

    def routes(self) -> list[Route]:
        """Route the next item, the form of an item, and the reopening of the last one."""
        return [
            Route("/queue/next", self.next_item),
            Route("/queue/reopen", self.open_again, methods=["POST"]),
            *form_routes("/queue/item/{item:int}", self.show, self.write),
        ]

    async def next_item(self, request: Request) -> Response:
        """Lead to the person's next item."""
        person = person_of(self.queue, request)
        if person.role != "annotator":
            raise PageError(403, "Only annotators label: choose an annotator's name to label.")
        offer = await in_thread(self.queue.claim_next, person.id)
        if offer is None:
            counts = await in_thread(self.queue.progress, person.id)
            return page(request, "labelling/done.html", counts=counts)
        return RedirectResponse(f"/queue/item/{offer.item}", 303)

    async def open_again(self, request: Request) -> Response:
        """Open the last submission again, or say that it is too late."""
        person = person_of(self.queue, request)
        item = await in_thread(self.queue.reopen, person.id)
        if item is None:
            raise PageError(409, "There is no submission of the last five minutes to open again.")
        return RedirectResponse(f"/queue/item/{item}", 303)

    async def show(self, request: Request, problem: str = "") -> Response:
        """Show an item to the person who has it."""
        person = person_of(self.queue, request)
        item = int(request.path_params["item"])
        drawn = await in_thread(self._open, person.id, item)
        reading = await in_thread(self.queue.own_reading, person.id, item)
        key = secrets.token_hex(16)
        try:
            content = await in_thread(self._content, request, item, drawn)
        except PageError as error:
            shown = {"sentence": error.sentence, "problem": problem, "request_key": key}
            return page(request, "labelling/missing.html", error.status, reading=reading, **shown)
        guidelines = await in_thread(read_guidelines, self.queue.folder)
        await in_thread(self.queue.guideline_shown, person.id, guidelines.version)
        return page(
            request,
            "labelling/annotate.html",
            422 if problem else 200,
            view=content,
            tabs=BLIND_TABS,
            answers=reading.answers,
            version=reading.version,
            request_key=key,
            questions=form_questions(self.queue.settings.questions),
            guidelines=guidelines,
            counts=await in_thread(self.queue.progress, person.id),
            returned=await in_thread(self.queue.returned_reason, item),
            mark_kinds=MARK_KINDS,
            mark_kind=_KIND_OF_TAB[content.request.tab],
            problem=problem,
        )

    async def write(self, request: Request) -> Response:
        """Take a draft, a submission, a mark, a skip, or an item that is given back."""
        person = person_of(self.queue, request)
        item = int(request.path_params["item"])
        fields = await form_fields(request)
        try:
            return await in_thread(self._write, request, person.id, item, fields)
        except LabelConflict as conflict:
            if wants_json(request):
                answers = conflict.answers.model_dump(mode="json")
                message = {"error": str(conflict), "version": conflict.version, "answers": answers}
                return json_page(message, 409)
            raise PageError(409, str(conflict)) from conflict
        except LabelRefused as refused:
            if wants_json(request):
                return json_page({"error": str(refused)}, 422)
            return await self.show(request, str(refused))

    def _write(
        self, request: Request, person: int, item: int, fields: Mapping[str, str]
    ) -> Response:
        action, key = fields.get("action", "draft"), fields.get("request", "")
        queue = self.queue
        if action == "skip":
            queue.give_up("skipped", person, item, fields.get("skip_reason", ""), key)
            return RedirectResponse(_NEXT, 303)
        if action == "release":
            queue.give_up("released", person, item, "given back", key)
            return RedirectResponse("/", 303)
        reading = queue.own_reading(person, item)
        answers = read_answers(fields, queue.settings.questions, reading.answers)
        answers = answers.model_copy(
            update={"guideline_version": guideline_version(queue.folder) or None}
        )
        version = small_number(fields.get("version", "")) or 0
        if action == "submit":
            try:
                queue.submit(person, item, answers, version, key)
            except LabelConflict:
                raise
            except LabelRefused:
                # What was answered so far is kept.
                with suppress(LabelRefused):
                    queue.save_draft(person, item, answers, version)
                raise
            informed = queue.settings.informed
            return RedirectResponse(f"/queue/verdicts/{item}" if informed else _NEXT, 303)
        if action == "mark":
            answers = marked(answers, fields)
        elif action.startswith("unmark:"):
            answers = unmarked(answers, action.partition(":")[2])
        version = queue.save_draft(person, item, answers, version)
        if wants_json(request):
            return json_page({"version": version})
        query = request.url.query
        return RedirectResponse(f"/queue/item/{item}" + (f"?{query}" if query else ""), 303)

    def _open(self, person: int, item: int) -> QueueItem:
        """Return an item that the person may write to now. Raises PageError for any other."""
        drawn = self.queue.item(item)
        if drawn is None or not self.queue.may_label(person, item):
            raise PageError(404, "This item is not open for you: go on with the next one.")
        self.queue.renew(person, item)
        return drawn

    def _content(self, request: Request, item: int, drawn: QueueItem) -> StepContent:
        chosen = blind_request(dict(request.query_params))
        path = ("queue", "item", item)
        return blind_content(self.access, workspace_of(request), drawn, path, chosen)


class InformedPages(NamedTuple):
    """What the handlers of the second stage share."""

    queue: LabelQueue
    verdicts: FrameVerdicts

    def routes(self) -> list[Route]:
        """Route the verdicts on an item, and the answer to them."""
        return form_routes("/queue/verdicts/{item:int}", self.show, self.write)

    async def show(self, request: Request, problem: str = "") -> Response:
        """Show the verdicts after the submission, which is recorded first."""
        person = person_of(self.queue, request)
        item = int(request.path_params["item"])
        reading, shown = await in_thread(self._show, person.id, item)
        if reading.revised:
            return RedirectResponse(_NEXT, 303)
        return page(
            request,
            "labelling/informed.html",
            422 if problem else 200,
            item=item,
            answers=reading.answers,
            verdicts=shown,
            questions=form_questions(self.queue.settings.questions),
            request_key=secrets.token_hex(16),
            problem=problem,
        )

    async def write(self, request: Request) -> Response:
        """Keep the label or record the other one, and go on."""
        person = person_of(self.queue, request)
        item = int(request.path_params["item"])
        fields = await form_fields(request)
        questions = self.queue.settings.questions
        try:
            answers = None
            if fields.get("action") == "revise":
                reading = await in_thread(self.queue.own_reading, person.id, item)
                answers = read_answers(fields, questions, reading.answers)
                if any(not answers.value(question) for question in questions):
                    raise LabelRefused("Not revised: answer every question.")
            key = fields.get("request", "")
            await in_thread(self.queue.revise, person.id, item, answers, key)
        except LabelRefused as refused:
            return await self.show(request, str(refused))
        return RedirectResponse(_NEXT, 303)

    def _show(self, person: int, item: int) -> tuple[OwnReading, list[ShownVerdict]]:
        drawn = self.queue.item(item)
        if drawn is None:
            raise PageError(404, "There is no such item in this queue.")
        shown = self.verdicts.of(drawn.key)
        try:
            self.queue.show_verdicts(person, item, [verdict.evaluator for verdict in shown])
        except LabelRefused as refused:
            raise PageError(404, str(refused)) from refused
        return self.queue.own_reading(person, item), shown
