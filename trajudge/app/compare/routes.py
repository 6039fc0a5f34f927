"""The address of the comparison."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.compare.paired_judges import PairedTables
from trajudge.app.compare.query import PRESETS, read_compare
from trajudge.app.compare.table import ComparedJudges, compare
from trajudge.app.server.pages import json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of
from trajudge.eval.store.filters import FIELDS


def routes() -> list[Route]:
    """Route the table of trajectories by judges."""
    return [Route("/compare", _Comparison().show)]


class _Comparison:
    def __init__(self) -> None:
        self._tables = PairedTables()

    async def show(self, request: Request) -> Response:
        workspace = workspace_of(request)
        if not workspace.runs:
            raise PageError(404, "No run is open here: start again with the folders of runs.")
        query = read_compare(dict(request.query_params), request.query_params.getlist("runs"))
        view = await in_thread(compare, workspace, query, self._tables)
        if wants_json(request):
            if view.query.problem:
                raise PageError(422, view.query.problem)
            return json_page(_as_json(view))
        status = 422 if view.query.problem else 200
        shown = {"view": view, "presets": PRESETS, "fields": FIELDS}
        return page(request, "compare/table.html", status, **shown)


def _as_json(view: ComparedJudges) -> dict[str, object]:
    return {
        "judges": view.judges,
        "total": view.total,
        "rows": [
            {
                "key": vars(row.key),
                "expert": row.expert,
                "rule": row.rule,
                "same_evidence": row.same,
                "cells": [cell and cell._asdict() for cell in row.cells],
            }
            for row in view.rows
        ],
        "pair": view.paired
        and {
            **view.paired.counts._asdict(),
            "n": view.paired.counts.n,
            "missing": view.paired.missing,
            "a": view.query.first,
            "b": view.query.second,
        },
        "next": view.query.link(after=view.after) if view.after is not None else None,
    }
