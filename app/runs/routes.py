"""Addresses of the pages of runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from trajudge.app.runs.listing import listed_runs
from trajudge.app.runs.table import (
    JudgmentTable,
    csv_lines,
    key_of,
    read_query,
    row_link,
    row_record,
)
from trajudge.app.server.links import trajectory_link
from trajudge.app.server.pages import json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import workspace_of
from trajudge.eval.data.run_index.fields import FIELDS

_CHUNK = 2_000  # lines of CSV that are read in one go


def routes() -> list[Route]:
    """Route the list of runs, and the table of each."""
    return [
        Route("/", _list),
        Route("/run/{run}/judgments", _Table().show),
        Route("/run/{run}/judgments.csv", _export),
    ]


async def _list(request: Request) -> Response:
    workspace = workspace_of(request)
    runs = await in_thread(listed_runs, [*workspace.runs.values()])
    if wants_json(request):
        return json_page({"runs": [run._asdict() for run in runs]})
    return page(request, "runs/list.html", runs=runs)


class _Table:
    def __init__(self) -> None:
        self._table = JudgmentTable()

    async def show(self, request: Request) -> Response:
        run = workspace_of(request).run(request.path_params["run"])
        query = read_query(dict(request.query_params))
        view = await in_thread(self._table.view, run, query)
        path = request.url.path
        if wants_json(request):
            if query.problem:
                raise PageError(422, query.problem)
            rows = [row_record(run, row) for row in view.page.rows]
            after = view.page.after
            more = query.address(path, after=after) if after else None
            return json_page({"total": view.total, "judgments": rows, "next": more})
        return page(
            request,
            "runs/judgments.html",
            422 if query.problem else 200,
            run=run,
            view=view,
            path=path,
            fields=FIELDS,
            row_link=row_link,
            trajectory_link=trajectory_link,
            key_of=key_of,
        )


async def _export(request: Request) -> Response:
    run = workspace_of(request).run(request.path_params["run"])
    query = read_query(dict(request.query_params))
    if query.problem:
        raise PageError(422, query.problem)
    places = [int(one) for one in request.query_params.getlist("place") if one.isdecimal()]
    lines = csv_lines(run, query, places)
    first = await in_thread(_chunk, lines)
    name = f'attachment; filename="{run.name}-judgments.csv"'
    return StreamingResponse(
        _chunks(first, lines), media_type="text/csv", headers={"Content-Disposition": name}
    )


def _chunk(lines: Iterator[bytes]) -> bytes:
    return b"".join(line for _, line in zip(range(_CHUNK), lines, strict=False))


async def _chunks(first: bytes, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    chunk = first
    while chunk:
        yield chunk
        chunk = await in_thread(_chunk, lines)
