"""Addresses of the pages of runs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.runs.listing import listed_runs
from trajudge.app.server.pages import json_page, page, wants_json
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of


def routes() -> list[Route]:
    """Route the list of runs."""
    return [Route("/", _list)]


async def _list(request: Request) -> Response:
    workspace = workspace_of(request)
    runs = await in_thread(listed_runs, [*workspace.runs.values()])
    if wants_json(request):
        return json_page({"runs": [run._asdict() for run in runs]})
    return page(request, "runs/list.html", runs=runs)
