"""The pages of a queue: an item is labelled blind, then with the verdicts if the queue asks for it.

What must not be seen is taken out before a template gets it, so that no page can show it by
mistake: the agent's name, the official reward, telemetry, metadata, paths of files. An answer given
with the verdicts is an event of its own and never replaces what was labelled blind. An adjudicator
decides items whose labels differ or are unsure, and sees how far the annotators agree. Runs and
trajectories under their own address are not served here: they show verdicts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from string import ascii_uppercase
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.queue import (
    Dispute,
    FormAnswers,
    LabelConflict,
    LabelQueue,
    LabelRefused,
    OwnReading,
    Person,
    QueueItem,
)
from trajudge.app.audit_pages import AuditPages, FrameVerdicts, RuleText, ShownVerdict
from trajudge.app.label_forms import (
    MARK_KINDS,
    NobodyChosen,
    adjudicator_of,
    form_questions,
    guideline_version,
    marked,
    people_routes,
    person_of,
    read_answers,
    read_guidelines,
    small_number,
    unmarked,
)
from trajudge.app.library import TrajectoryAbsent
from trajudge.app.serving import Room
from trajudge.app.steps import GoalPicture, StepSummary
from trajudge.app.trajectory_page import (
    StepContent,
    StepRequest,
    TrajectoryAccess,
    step_linker,
    step_request,
)
from trajudge.app.trajectory_page import routes as trajectory_routes
from trajudge.app.web import (
    NavLink,
    PageError,
    form_fields,
    form_routes,
    in_thread,
    json_page,
    page,
    wants_json,
)
from trajudge.app.workspace import Workspace, workspace_of
from trajudge.eval.labelling.agreement import queue_quality

T = TypeVar("T", StepSummary, GoalPicture)

BLIND_TABS = {"action": "Action & reasoning", "tree": "Accessibility tree", "answer": "Answer"}


def blind_request(query: Mapping[str, str]) -> StepRequest:
    """Read which step and tab an address asks for; what is not understood has its default."""
    asked = step_request(query)
    tab = asked.tab if asked.tab in BLIND_TABS else "action"
    return asked._replace(tab=tab, unseen=None, run="")


def blind_content(
    access: TrajectoryAccess,
    workspace: Workspace,
    item: QueueItem,
    path: tuple[str | int, ...],
    chosen: StepRequest,
) -> StepContent:
    """Open an item's trajectory and take out what must not be seen; its links lead to ``path``.
    Raises PageError 404 for one that is not in the data."""
    try:
        opened = access.library(workspace).open(item.key)
    except TrajectoryAbsent as absent:
        # The message names the agent, which the annotator must not read.
        raise PageError(
            404,
            "The trajectory of this item is not in the data: skip it, or start again with --data.",
        ) from absent
    content = access.summaries.content(opened, chosen)
    hidden = item.key.model_copy(update={"agent": ""})
    trajectory = opened.trajectory.model_copy(
        update={"key": hidden, "official_reward": None, "telemetry": {}, "metadata": {}}
    )
    return content._replace(
        key=hidden,
        trajectory=trajectory,
        warnings=(),
        steps=tuple(map(_blind, content.steps)),
        goal_pictures=tuple(map(_blind, content.goal_pictures)),
        shown=None if content.shown is None else _blind(content.shown),
        network=None,
        facts=(),
        metadata=(),
        link=step_linker(path, content.request),
    )


def _blind(pictured: T) -> T:
    """Leave out why a picture cannot be shown: the reason names its file."""
    return pictured._replace(no_image="its file cannot be read") if pictured.no_image else pictured


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
            answer = await in_thread(self._write, request, person.id, item, fields)
            leads = answer.headers.get("location")
            return json_page({"next": leads}) if leads and wants_json(request) else answer
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
        if action == "draft" and wants_json(request):
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
        drawn = {each.item: self.queue.item(each.item) for each in listed}
        keys = {number: item.key for number, item in drawn.items() if item is not None}
        library = self.access.library(workspace_of(request))
        known = await in_thread(library.goals, keys.values())
        goals = {number: known[key] for number, key in keys.items()}
        return page(request, "labelling/disputes.html", disputes=listed, goals=goals)

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


_MOST = 2**53
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def label_room(queue: LabelQueue, rules: Mapping[str, RuleText] | None = None) -> Room:
    """Put the pages of a queue together. ``rules``: what the rules of tasks demand, by task id."""
    access = TrajectoryAccess()
    verdicts = FrameVerdicts(queue.folder)

    async def home(request: Request) -> Response:
        person = person_of(queue, request)
        counts = await in_thread(queue.progress, person.id)
        return page(request, "labelling/home.html", counts=counts, annotator=person)

    own = [
        Route("/", home),
        *AnnotationPages(queue, access).routes(),
        *InformedPages(queue, verdicts).routes(),
        *AdjudicationPages(queue, access).routes(),
        *AgreementPage(queue).routes(),
        *AuditPages(queue, verdicts, access, rules or {}).routes(),
    ]
    pictures = [each for each in trajectory_routes(access) if each.path.startswith("/image/")]
    known = [_for_somebody(route) for route in own]
    return Room([*known, *people_routes(queue), *pictures], [NavLink("/", "Queue", "g q")])


def _for_somebody(route: Route) -> Route:
    """Ask who it is before a page of the queue is shown."""
    handler: Handler = route.endpoint

    async def guarded(request: Request) -> Response:
        if request.path_params.get("item", 0) > _MOST:
            raise PageError(404, "There is no such item in this queue.")
        try:
            return await handler(request)
        except NobodyChosen:
            return RedirectResponse("/people", 303)

    methods = [method for method in route.methods or () if method != "HEAD"]
    return Route(route.path, guarded, methods=methods)
