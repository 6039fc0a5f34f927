"""Addresses of judgments."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.judgments.detail import JudgmentDetail, judgment_detail
from trajudge.app.server.pages import json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of
from trajudge.app.trajectories.access import TrajectoryAccess


def routes(access: TrajectoryAccess) -> list[Route]:
    """Route the page of a judgment, which stands in a line of its run's file."""

    async def show(request: Request) -> Response:
        workspace = workspace_of(request)
        run, place = workspace.run(request.path_params["run"]), request.path_params["place"]
        if not re.fullmatch(r"[0-9]{1,12}", place):
            raise PageError(404, "A judgment's address ends with the number of its line, from 0.")
        query = dict(request.query_params)
        view = await in_thread(judgment_detail, access, workspace, run, int(place), query)
        if wants_json(request):
            return json_page(_as_json(view))
        return page(request, "judgments/detail.html", view=view)

    return [Route("/run/{run}/judgment/{place}", show)]


def _as_json(view: JudgmentDetail) -> dict[str, object]:
    rebuilt = view.rebuilt
    return {
        "judgment": view.judgment.model_dump(mode="json", exclude={"record"}),
        "prompt": {
            "outcome": rebuilt.outcome,
            "sentence": rebuilt.sentence,
            "unseen": rebuilt.unseen,
        },
        "calls": [
            {
                "stage": each.call.stage,
                "recorded": each.call.request,
                "rebuilt": each.hash,
                "same": each.same,
                "messages": each.prompt
                and [
                    {"role": m.role, "parts": [p.text or {"image": p.image} for p in m.parts]}
                    for m in each.prompt
                ],
            }
            for each in view.calls
        ],
        "not_shown": view.not_shown,
    }
