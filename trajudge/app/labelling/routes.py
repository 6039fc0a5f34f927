"""The rooms of ``trajudge label``: all pages of a queue, and pictures by their hash.

Runs and trajectories under their own address are not served beside them: they show verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trajudge.annotations.queue import LabelQueue
from trajudge.app.labelling.adjudicate import AdjudicationPages, AgreementPage
from trajudge.app.labelling.annotate import AnnotationPages, InformedPages
from trajudge.app.labelling.audit import AuditPages, RuleText
from trajudge.app.labelling.people import NobodyChosen, people_routes, person_of
from trajudge.app.labelling.verdicts import FrameVerdicts
from trajudge.app.server.application import Room
from trajudge.app.server.pages import NavLink, page
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.routes import routes as trajectory_routes

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
