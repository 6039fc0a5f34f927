"""The table of a run's judgments: filtered, sorted, fifty rows at a time, or all as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from trajudge.app.pages.filtering import asked_filter
from trajudge.app.pages.spreadsheets import no_formula
from trajudge.app.server.links import address, trajectory_link
from trajudge.app.server.workspace import OpenedRun
from trajudge.eval.store.filters import (
    MOST,
    PAGE,
    Filter,
    JudgmentView,
    Sorting,
    judgment_page,
    parse_sorting,
    sorted_rows,
)
from trajudge.util.errors import UserError

COLUMNS: Mapping[str, tuple[str, str]] = {
    "benchmark": ("benchmark", "name"),
    "agent": ("agent", "name"),
    "judge": ("judge", "name"),
    "success": ("verdict", "name"),
    "expert": ("expert", "name"),
    "rule": ("rule", "name"),
    "score": ("score", ""),
    "status": ("status", "name"),
    "reasoning": ("reasoning", "name"),
    "cost": ("cost $", ""),
    "tokens": ("tokens", ""),
    "seconds": ("seconds", ""),
}
"""The columns beside the task: title, and the class of what is no number. A name of SORTS sorts."""
DEFAULT_COLUMNS = tuple(name for name in COLUMNS if name not in ("benchmark", "tokens"))


class TableQuery(NamedTuple):
    """What an address asks of the table; ``problem`` says why its filter or its columns cannot be
    read."""

    text: str
    chosen: Filter
    sorting: Sorting
    after: int | None
    before: int | None
    limit: int
    problem: str
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    columns_text: str = ""

    @property
    def chosen_columns(self) -> str:
        """Name the columns, "" for those that are shown unless told otherwise."""
        return "" if self.columns == DEFAULT_COLUMNS else " ".join(self.columns)

    def address(self, path: str, **changes: str) -> str:
        """Return the address of this table with other values."""
        kept = {"f": self.text, "sort": str(self.sorting), "cols": self.chosen_columns, **changes}
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
    return TableQuery(
        **asked._asdict(),
        columns=columns or DEFAULT_COLUMNS,
        columns_text=values.get("cols", "") or " ".join(DEFAULT_COLUMNS),
        sorting=parse_sorting(values.get("sort", "place")),
        after=_row(values.get("after", "")),
        before=_row(values.get("before", "")),
        limit=min(int(limit), MOST) if limit.isdecimal() and len(limit) < 9 else PAGE,
    )


def shown_judgments(run: OpenedRun, query: TableQuery) -> ShownJudgments:
    """Read one page of a run's table. Raises UserError as the run's view does."""
    if query.problem:
        return ShownJudgments(query, [], None, None, 0)
    view = run.view()
    found = judgment_page(
        view,
        query.chosen,
        query.sorting,
        after=query.after,
        before=query.before,
        limit=query.limit,
    )
    rows = [row_record(run, view, row) for row in found.rows]
    return ShownJudgments(query, rows, found.before, found.after, found.total)


def row_record(run: OpenedRun, view: JudgmentView, row: int) -> dict[str, Any]:
    """Return a row of the table, for people and for programs."""
    trajectory = trajectory_link(view.keys.key(int(view.trajectory[row])))
    link = address("run", run.name, "judgment", row)
    return {**view.record(row), "link": link, "trajectory": trajectory}


def csv_lines(run: OpenedRun, query: TableQuery, places: Sequence[int] = ()) -> Iterator[bytes]:
    """Yield the filtered table as CSV, a header and a line a judgment; only those of ``places``,
    if there are any. Raises UserError as the run's view does."""
    view, wanted = run.view(), set(places)
    head: list[str] = []
    for row in sorted_rows(view, query.chosen, query.sorting).tolist():
        if wanted and row not in wanted:
            continue
        record = row_record(run, view, row)
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
