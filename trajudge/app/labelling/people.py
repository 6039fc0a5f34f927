"""Who sends a request: the person of a token, or without sign-in the one who chose their name."""

from __future__ import annotations

import os
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.queue import NAME_LIMIT, LabelQueue, Person
from trajudge.app.labelling.forms import small_number
from trajudge.app.server.pages import form_fields, page
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread

_DAYS = 30


class NobodyChosen(Exception):
    """The request comes from nobody known yet: the page that asks for a name comes first."""


def cookie_of(queue: LabelQueue) -> str:
    """Name the cookie that holds a person's number: the queue's own, for a browser gives cookies
    to every port of a host, and numbers mean other people in other queues."""
    return f"trajudge-annotator-{sha256(os.fsencode(queue.folder.resolve())).hexdigest()[:8]}"


def person_of(queue: LabelQueue, request: Request) -> Person:
    """Return who sends a request. Raises NobodyChosen, PageError for a person who was removed."""
    name = getattr(request.state, "person", None)
    if name is not None:
        person = queue.person(name)
    else:
        number = small_number(request.cookies.get(cookie_of(queue), ""))
        person = None if number is None else queue.person(number)
    if person is None:
        raise NobodyChosen
    if not person.active:
        raise PageError(403, "This person labels here no more: ask whoever keeps the queue.")
    return person


def adjudicator_of(queue: LabelQueue, request: Request) -> Person:
    """Return who sends a request, if they may see what others labelled. Raises PageError 403."""
    person = person_of(queue, request)
    if person.role == "annotator":
        raise PageError(
            403,
            "This page shows what others labelled: it is for adjudicators and viewers.",
        )
    return person


def people_routes(queue: LabelQueue) -> list[Route]:
    """Route the choice of a name, for a queue that nobody signs in to."""

    async def choose(request: Request) -> Response:
        if getattr(request.state, "person", None) is not None:
            return RedirectResponse("/", 303)
        problem = ""
        if request.method == "POST":
            fields = await form_fields(request)
            number = small_number(fields.get("person", ""))
            if number is not None and queue.person(number) is not None:
                return _chosen(queue, number)
            name, role = fields.get("name", "").strip(), fields.get("role", "annotator")
            if not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
                problem = f"Give a name of 1 to {NAME_LIMIT} printable characters."
            elif queue.person(name) is not None:
                problem = "There is a person of this name: choose them, or another name."
            else:
                chosen = "adjudicator" if role == "adjudicator" else "annotator"
                added, _ = await in_thread(queue.add_person, name, chosen)  # type: ignore[arg-type]
                return _chosen(queue, added.id)
        known = [person for person in await in_thread(queue.people) if person.active]
        return page(
            request,
            "labelling/people.html",
            422 if problem else 200,
            people=known,
            problem=problem,
        )

    return [Route("/people", choose, methods=["GET", "POST"])]


def _chosen(queue: LabelQueue, number: int) -> Response:
    response = RedirectResponse("/", 303)
    response.set_cookie(
        cookie_of(queue), str(number), max_age=_DAYS * 86_400, httponly=True, samesite="strict"
    )
    return response
