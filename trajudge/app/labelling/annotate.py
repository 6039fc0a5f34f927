"""The page on which an item is labelled, blind, and what its form sends."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.offers import (
    claim_next,
    may_label,
    own_progress,
    progress,
    renew,
    returned_reason,
)
from trajudge.annotations.labelling.records import QueueItem, ReadingId
from trajudge.annotations.labelling.submissions import (
    LabelConflict,
    LabelRefused,
    OwnReading,
    guideline_shown,
    own_reading,
    release,
    reopen,
    save_draft,
    skip,
    submit,
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
from trajudge.app.server.pages import form_fields, form_routes, json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import Workspace, workspace_of
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.content import StepContent

_NEXT = "/queue/next"
_KIND_OF_TAB = {"action": "action", "tree": "axtree", "answer": "answer"}


class AnnotationPages(NamedTuple):
    """What the handlers of an annotator's pages share."""

    store: LabelStore
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
        person = person_of(self.store, request)
        if person.role != "annotator":
            raise PageError(403, "Only annotators label: choose an annotator's name to label.")
        offer = await in_thread(claim_next, self.store, person.id)
        if offer is None:
            counts = await in_thread(progress, self.store, person.id)
            return page(request, "labelling/done.html", counts=counts)
        return RedirectResponse(f"/queue/item/{offer.item}", 303)

    async def open_again(self, request: Request) -> Response:
        """Open the last submission again, or say that it is too late."""
        person = person_of(self.store, request)
        item = await in_thread(reopen, self.store, person.id)
        if item is None:
            raise PageError(409, "There is no submission of the last five minutes to open again.")
        return RedirectResponse(f"/queue/item/{item}", 303)

    async def show(self, request: Request, problem: str = "") -> Response:
        """Show an item to the person who has it."""
        person = person_of(self.store, request)
        who = ReadingId(person.id, int(request.path_params["item"]))
        drawn = await in_thread(self._open, who)
        reading = await in_thread(self._reading, who)
        key = secrets.token_hex(16)
        try:
            content = await in_thread(self._content, request, who, drawn)
        except PageError as error:
            shown = {"sentence": error.sentence, "problem": problem, "request_key": key}
            return page(request, "labelling/missing.html", error.status, reading=reading, **shown)
        guidelines = await in_thread(read_guidelines, self.store.folder)
        await in_thread(guideline_shown, self.store, person.id, guidelines.version)
        return page(
            request,
            "labelling/annotate.html",
            422 if problem else 200,
            view=content,
            tabs=BLIND_TABS,
            answers=reading.answers,
            version=reading.version,
            request_key=key,
            questions=form_questions(self.store.settings.questions),
            guidelines=guidelines,
            counts=await in_thread(own_progress, self.store, person.id),
            returned=await in_thread(self._returned, who),
            mark_kinds=MARK_KINDS,
            mark_kind=_KIND_OF_TAB[content.request.tab],
            problem=problem,
        )

    async def write(self, request: Request) -> Response:
        """Take a draft, a submission, a mark, a skip, or an item that is given back."""
        person = person_of(self.store, request)
        who = ReadingId(person.id, int(request.path_params["item"]))
        fields = await form_fields(request)
        try:
            return await in_thread(self._write, request, who, fields)
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

    def _write(self, request: Request, who: ReadingId, fields: Mapping[str, str]) -> Response:
        action, key = fields.get("action", "draft"), fields.get("request", "")
        if action == "skip":
            skip(self.store, who, fields.get("skip_reason", ""), key)
            return RedirectResponse(_NEXT, 303)
        if action == "release":
            release(self.store, who, key)
            return RedirectResponse("/", 303)
        reading = own_reading(self.store.reading(), who)
        answers = read_answers(fields, self.store.settings.questions, reading.answers)
        answers = answers.model_copy(
            update={"guideline_version": guideline_version(self.store.folder) or None}
        )
        version = small_number(fields.get("version", "")) or 0
        if action == "submit":
            try:
                submit(self.store, who, answers, version, key)
            except LabelConflict:
                raise
            except LabelRefused:
                # What was answered so far is kept.
                with suppress(LabelRefused):
                    save_draft(self.store, who, answers, version)
                raise
            informed = self.store.settings.informed
            return RedirectResponse(f"/queue/verdicts/{who.item}" if informed else _NEXT, 303)
        if action == "mark":
            answers = marked(answers, fields)
        elif action.startswith("unmark:"):
            answers = unmarked(answers, action.partition(":")[2])
        version = save_draft(self.store, who, answers, version)
        if wants_json(request):
            return json_page({"version": version})
        query = request.url.query
        return RedirectResponse(f"/queue/item/{who.item}" + (f"?{query}" if query else ""), 303)

    def _reading(self, who: ReadingId) -> OwnReading:
        return own_reading(self.store.reading(), who)

    def _open(self, who: ReadingId) -> QueueItem:
        """Return an item that the person may write to now. Raises PageError for any other."""
        drawn = self.store.item(who.item)
        if drawn is None or not may_label(self.store.reading(), self.store.now(), *who):
            raise PageError(404, "This item is not open for you: go on with the next one.")
        renew(self.store, who.person, who.item)
        return drawn

    def _content(self, request: Request, who: ReadingId, drawn: QueueItem) -> StepContent:
        path = ("queue", "item", who.item)
        workspace: Workspace = workspace_of(request)
        chosen = blind_request(dict(request.query_params))
        return blind_content(self.access, workspace, drawn, path, chosen)

    def _returned(self, who: ReadingId) -> str:
        return returned_reason(self.store.reading(), who.item)
