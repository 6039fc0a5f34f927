"""Addresses of the pages of runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from trajudge.app.reports.views import run_card
from trajudge.app.runs.costs import RunCosts
from trajudge.app.runs.listing import listed_runs
from trajudge.app.runs.overview import ending_table, group_table, headline, table_link
from trajudge.app.runs.queues import listed_queues, new_queue
from trajudge.app.runs.scored import RunScores, ScoringState
from trajudge.app.runs.scoring import ScoredRun
from trajudge.app.runs.spending import Spending, spending_of
from trajudge.app.runs.table import COLUMNS, csv_lines, read_query, shown_judgments
from trajudge.app.server.pages import json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import OpenedRun, workspace_of
from trajudge.eval.reporting.results import results_json
from trajudge.eval.reporting.sentences import cost_sentence, finding, notes, warnings_of
from trajudge.eval.scoring.records import LABEL_TITLES
from trajudge.eval.store.filters import FIELDS, SORTS

# Seconds that a page waits for scores, and for costs, before it shows what is there.
_PATIENCE = 1.0
_CHUNK = 2_000  # lines of CSV that are read in one go


def routes() -> list[Route]:
    """Route the list of runs, the overview of each, and its table."""
    return [
        Route("/", _List().show),
        Route("/run/{run}", _Overview().show),
        Route("/run/{run}/judgments", _table),
        Route("/run/{run}/judgments.csv", _export),
        Route("/run/{run}/queue", new_queue, methods=["GET", "POST"]),
    ]


class _List:
    def __init__(self) -> None:
        self._costs = RunCosts()

    async def show(self, request: Request) -> Response:
        workspace = workspace_of(request)
        opened = [*workspace.runs.values()]
        wait = None if wants_json(request) else _PATIENCE
        costs = await in_thread(self._costs.of, opened, wait)
        sort = request.query_params.get("sort", "")
        runs = await in_thread(listed_runs, opened, costs, sort)
        if wants_json(request):
            return json_page({"runs": [run._asdict() for run in runs]})
        queues = await in_thread(listed_queues, workspace.queues)
        return page(request, "runs/list.html", runs=runs, sort=sort, queues=queues)


class _Overview:
    def __init__(self) -> None:
        self._scores = RunScores()

    async def show(self, request: Request) -> Response:
        workspace = workspace_of(request)
        run = workspace.run(request.path_params["run"])
        wait = None if wants_json(request) else _PATIENCE
        state = await in_thread(self._scores.of, run, workspace.annotations, wait)
        if wants_json(request) and state.scored:
            return Response(results_json(state.scored.scores), media_type="application/json")
        spending = await in_thread(spending_of, run)
        shown = await in_thread(_overview, run, state, spending)
        return page(request, "runs/overview.html", **shown)


def _overview(run: OpenedRun, state: ScoringState, spending: Spending) -> dict[str, Any]:
    shown = {
        "run": run,
        "is_current": state.is_current,
        "spending": spending,
        "facts": run_card(run.folder).facts,
        "scored": None,
    }
    return shown | (_figures(run.name, state.scored) if state.scored else {})


def _figures(run: str, scored: ScoredRun) -> dict[str, Any]:
    scores, question, labelled, _ = scored
    benchmarks, group_rows = group_table(run, scored)
    return {
        "scored": scored,
        "finding": finding(scores, question if labelled else None),
        "warnings": [line.removeprefix("warning: ") for line in warnings_of(scores)],
        "notes": notes(scores),
        "cost": cost_sentence(scores),
        "title": scores.titled(LABEL_TITLES[question]),
        "headline": headline(run, scored) if labelled else [],
        "linked": question == "success" and labelled,
        "false_positives": table_link(run, ("wrong", ":", "fp"), sort="-score"),
        "false_negatives": table_link(run, ("wrong", ":", "fn"), sort="score"),
        "coverage": ending_table(run, scores),
        "benchmarks": benchmarks,
        "group_rows": group_rows if labelled else [],
    }


async def _table(request: Request) -> Response:
    run = workspace_of(request).run(request.path_params["run"])
    query = read_query(dict(request.query_params))
    notes = await in_thread(run.notes)
    view = await in_thread(shown_judgments, run, query)
    path = request.url.path
    if wants_json(request):
        if query.problem:
            raise PageError(422, query.problem)
        more = None if view.after is None else query.address(path, after=str(view.after))
        content = {"total": view.total, "judgments": view.rows, "next": more, "notes": notes}
        return json_page(content)
    return page(
        request,
        "runs/judgments.html",
        422 if query.problem else 200,
        run=run,
        view=view,
        notes=notes,
        path=path,
        fields=FIELDS,
        columns=COLUMNS,
        sorts=SORTS,
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
