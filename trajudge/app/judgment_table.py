"""The table of a run's judgments: filtered, sorted, as pages, as CSV, or made a queue to label."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from trajudge.annotations.queue import QUESTIONS
from trajudge.app.rendering import no_formula
from trajudge.app.web import (
    PageError,
    address,
    asked_filter,
    form_fields,
    in_thread,
    json_page,
    last_page_link,
    page,
    trajectory_link,
    wants_json,
)
from trajudge.app.workspace import OpenedRun, Workspace, workspace_of
from trajudge.eval.labelling.build import picked_keys, plan_picked, write_queue
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.store.filters import (
    FIELDS,
    MOST,
    PAGE,
    SORTS,
    Filter,
    JudgmentView,
    Sorting,
    judgment_page,
    parse_sorting,
    sorted_rows,
)
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

COLUMNS: Mapping[str, tuple[str, str]] = {
    "success": ("verdict", "name"),
    "expert": ("expert", "name"),
    "rule": ("rule", "name"),
    "score": ("score", ""),
    "judge": ("judge", "name"),
    "benchmark": ("benchmark", "name"),
    "agent": ("agent", "name"),
    "agree": ("agree", ""),
    "status": ("status", "name"),
    "reasoning": ("reasoning", "name"),
    "cost": ("cost $", ""),
    "tokens": ("tokens", ""),
    "seconds": ("seconds", ""),
}
"""The columns after the goal: title, and the class of what is no number. A name of SORTS sorts."""
DEFAULT_COLUMNS = tuple(
    name for name in COLUMNS if name not in ("benchmark", "agent", "agree", "tokens")
)
# Those of a table that is sorted by how many agree.
_WITH_AGREE = (*DEFAULT_COLUMNS[:4], "agree", *DEFAULT_COLUMNS[4:])


class TableQuery(NamedTuple):
    """What an address asks of the table; ``problem`` says why its filter or its columns cannot be
    read. ``columns_text`` is what was written, "" for the default."""

    text: str
    chosen: Filter
    sorting: Sorting
    after: int | None
    before: int | None
    limit: int
    problem: str
    columns: tuple[str, ...]
    columns_text: str
    are_chosen: bool

    @property
    def tells_agreement(self) -> bool:
        """Whether it matters who agrees: then the judges of all runs are read."""
        return self.sorting.name == "agree" or "agree" in self.columns

    def address(self, path: str, **changes: str) -> str:
        """Return the address of this table with other values."""
        kept = {"f": self.text, "sort": str(self.sorting), "cols": self.columns_text, **changes}
        if kept["sort"] == "place":
            kept.pop("sort")
        named = {name: value for name, value in kept.items() if value}
        return path + ("?" + urlencode(named, errors="replace") if named else "")


class ShownJudgments(NamedTuple):
    """A page of the table: its rows as ``row_record`` makes them, and the rows that the pages
    beside it begin with, None at either end; ``total`` rows are kept by the filter."""

    query: TableQuery
    rows: list[dict[str, Any]]
    before: int | None
    after: int | None
    total: int


def _row(text: str) -> int | None:
    """Read the number of a row. Raises UserError for another text."""
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise UserError("This page's address was changed: go back to the beginning of the table.")
    return int(text)


def read_query(values: dict[str, str]) -> TableQuery:
    """Read the query of an address. Raises UserError for a sorting that is none; a filter that
    cannot be read is a ``problem`` beside its field, and keeps nothing."""
    limit = values.get("limit", "")
    asked = asked_filter(values)
    columns = tuple(dict.fromkeys(values.get("cols", "").replace(",", " ").split()))
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown:
        sentence = f"There is no column {unknown[0][:40]!r}: there are {', '.join(COLUMNS)}."
        asked, columns = asked._replace(problem=asked.problem or sentence), ()
    sorting = parse_sorting(values.get("sort", "place"))
    default = _WITH_AGREE if sorting.name == "agree" else DEFAULT_COLUMNS
    return TableQuery(
        **asked._asdict(),
        columns=columns or default,
        columns_text=" ".join(columns) or values.get("cols", ""),
        are_chosen=bool(columns),
        sorting=sorting,
        after=_row(values.get("after", "")),
        before=_row(values.get("before", "")),
        limit=min(int(limit), MOST) if limit.isdecimal() and len(limit) < 9 else PAGE,
    )


def shown_judgments(workspace: Workspace, run: OpenedRun, query: TableQuery) -> ShownJudgments:
    """Read one page of a run's table. Raises UserError as the run's view does."""
    if query.problem:
        return ShownJudgments(query, [], None, None, 0)
    view = workspace.view(run, agreeing=query.tells_agreement)
    found = judgment_page(
        view,
        query.chosen,
        query.sorting,
        after=query.after,
        before=query.before,
        limit=query.limit,
    )
    rows = [row_record(run, view, row, query) for row in found.rows]
    if not query.are_chosen:
        query = query._replace(columns=tuple(c for c in query.columns if _tells(view, c)))
    return ShownJudgments(query, rows, found.before, found.after, found.total)


def _tells(view: JudgmentView, column: str) -> bool:
    """Return True unless a column is empty, or of one value, in the whole run."""
    values = {"score": view.judgments.score, "seconds": view.seconds, "cost": view.cost}
    if column == "judge":
        return len(view.judgments.judges) > 1
    return column not in values or bool((values[column] > 0).any())


def row_record(run: OpenedRun, view: JudgmentView, row: int, query: TableQuery) -> dict[str, Any]:
    """Return a row of the table, for people and for programs; its goal is "" while it is not
    known. Where the query tells agreement, so many of the ``evaluators`` ``agree``."""
    place = int(view.trajectory[row])
    key, record = view.keys.key(place), view.record(row)
    if query.tells_agreement:
        agree = None if record["success"] is None else int(view.agreeing[row])
        record |= {"agree": agree, "evaluators": int(view.evaluators[:, place].sum())}
    links = {
        "link": address("run", run.name, "judgment", row),
        "trajectory": trajectory_link(key),
        "last_page": last_page_link(key, run.name),
    }
    return {**record, "goal": run.goal(key), **links}


def csv_lines(
    workspace: Workspace, run: OpenedRun, query: TableQuery, places: Sequence[int] = ()
) -> Iterator[bytes]:
    """Yield the filtered table as CSV, a header and a line a judgment; only those of ``places``,
    if there are any. Raises UserError as the run's view does."""
    view, wanted = workspace.view(run, agreeing=query.tells_agreement), set(places)
    head: list[str] = []
    for row in sorted_rows(view, query.chosen, query.sorting).tolist():
        if wanted and row not in wanted:
            continue
        record = row_record(run, view, row, query)
        if not head:
            head = [*record]
            yield _line(head)
        yield _line([_cell(value) for value in record.values()])


def _line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> str:
    """Write a value; text that a spreadsheet would compute gets an apostrophe in front."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = "" if value is None else str(value)
    return no_formula(text) if isinstance(value, str) else text


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_PLACES = 1_000


class NewQueue(NamedTuple):
    """What a queue is asked to be made of: ``places`` are lines of the run's file; none: all that
    the filter ``text`` keeps."""

    run: OpenedRun
    places: Sequence[int]
    text: str
    keys: Sequence[TrajectoryKey]


async def new_queue(request: Request) -> Response:
    """Ask how the ticked rows are to be labelled; make the queue of the form that is sent."""
    run = workspace_of(request).run(request.path_params["run"])
    if request.method == "GET":
        query = request.query_params
        asked = await in_thread(_asked, run, query.getlist("place"), query)
        name = await in_thread(_free_name, workspace_of(request).queues, run.name)
        return _form(request, asked, {"name": name})
    fields = await form_fields(request)
    asked = await in_thread(_asked, run, fields.get("places", "").split(), fields)
    try:
        made = await in_thread(_make, request, asked, fields)
    except UserError as error:
        return _form(request, asked, fields, str(error))
    return page(
        request,
        "runs/queue_made.html",
        run=run,
        folder=made,
        command=shlex.quote(str(made)),
        count=len(asked.keys),
    )


def _form(
    request: Request, asked: NewQueue, fields: Mapping[str, str], problem: str = ""
) -> Response:
    return page(
        request,
        "runs/queue.html",
        422 if problem else 200,
        asked=asked,
        fields=fields,
        goals=asked.run.goal,
        queues=workspace_of(request).queues.resolve(),
        problem=problem,
    )


def _asked(run: OpenedRun, places: Sequence[str], values: Mapping[str, str]) -> NewQueue:
    """Read what the table or the form sent. Raises PageError for a filter that cannot be read,
    UserError as ``picked_keys`` does."""
    asked = asked_filter(values)
    if asked.problem:
        raise PageError(422, asked.problem)
    lines = [int(one) for one in places if one.isdecimal() and len(one) < 16][:_MOST_PLACES]
    return NewQueue(run, lines, asked.text, picked_keys(run.view(), lines, asked.chosen))


def _make(request: Request, asked: NewQueue, fields: Mapping[str, str]) -> Path:
    """Write the queue; return its folder. Raises UserError for a name that cannot be used."""
    workspace, name = workspace_of(request), fields.get("name", "").strip()
    if not _NAME.fullmatch(name):
        raise UserError("Give the queue a name of letters, digits, hyphens and dots, up to 64.")
    folder = workspace.queues / name
    if folder.exists():
        raise UserError(f"There is a queue {name} already: give another name.")
    whole = fields.get("questions") != "success"
    config = BuildConfig(
        runs=(asked.run.folder,),
        filter="" if asked.places else asked.text,
        data=workspace.data or (asked.run.data,),
        double=1.0 if fields.get("double") else 0.0,
        questions=QUESTIONS if whole else QUESTIONS[:1],
        informed=bool(fields.get("informed")),
        out=folder,
    )
    write_queue(plan_picked(asked.run.folder, asked.keys, config), config)
    return folder.resolve()


def _free_name(folder: Path, run: str) -> str:
    """Propose a name that no queue has."""
    number = 1
    while (folder / f"{run[:50]}-{number}").exists():
        number += 1
    return f"{run[:50]}-{number}"


_CHUNK = 2_000  # lines of CSV that are read in one go


def routes() -> list[Route]:
    """Route the table of a run, as a page and as CSV, and the queue that is made from it."""
    return [
        Route("/run/{run}/judgments", _table),
        Route("/run/{run}/judgments.csv", _export),
        Route("/run/{run}/queue", new_queue, methods=["GET", "POST"]),
    ]


async def _table(request: Request) -> Response:
    run = workspace_of(request).run(request.path_params["run"])
    query = read_query(dict(request.query_params))
    notes = await in_thread(run.notes)
    view = await in_thread(shown_judgments, workspace_of(request), run, query)
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
    lines = csv_lines(workspace_of(request), run, query, places)
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
