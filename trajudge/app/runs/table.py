"""The table of a run's judgments: filtered, sorted, fifty rows at a time, or all as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from trajudge.app.pages.filtering import asked_filter
from trajudge.app.pages.spreadsheets import no_formula
from trajudge.app.server.links import address, trajectory_link
from trajudge.app.server.workspace import OpenedRun
from trajudge.eval.store.queries import (
    MOST,
    PAGE,
    Filter,
    JudgmentPage,
    JudgmentRow,
    Sorting,
    count_judgments,
    judgment_page,
    judgment_rows,
    parse_sorting,
)
from trajudge.trajectories.model import TrajectoryKey

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
EXPORT_SECONDS = 600.0
_COUNTED = 64  # filters whose number of rows is remembered


class TableQuery(NamedTuple):
    """What an address asks of the table; ``problem`` says why its filter or its columns cannot be
    read."""

    text: str
    chosen: Filter
    sorting: Sorting
    after: str
    before: str
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
    """A page of the table: ``total`` rows are kept by the filter."""

    query: TableQuery
    page: JudgmentPage
    total: int


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
        after=values.get("after", ""),
        before=values.get("before", ""),
        limit=min(int(limit), MOST) if limit.isdecimal() and len(limit) < 9 else PAGE,
    )


class JudgmentTable:
    """Reads pages of runs' tables; numbers of rows are remembered as long as the files stay."""

    def __init__(self) -> None:
        self._counts: dict[object, int] = {}

    def view(self, run: OpenedRun, query: TableQuery) -> ShownJudgments:
        """Read one page. Raises UserError as the index does."""
        if query.problem:
            return ShownJudgments(query, JudgmentPage([], None, None), 0)
        with run.index.reading() as connection:
            page = judgment_page(
                connection,
                query.chosen,
                query.sorting,
                after=query.after,
                before=query.before,
                limit=query.limit,
            )
            place = run.name, run.index.version, run.index.descriptions, query.chosen
            total = self._counts.get(place)
            if total is None:
                total = count_judgments(connection, query.chosen)
                if len(self._counts) >= _COUNTED:
                    self._counts.clear()
                self._counts[place] = total
        return ShownJudgments(query, page, total)


def row_link(run: OpenedRun, row: JudgmentRow, query: TableQuery | None = None) -> str:
    """Return the address of a judgment's page, which leads on through the table of ``query``."""
    path = address("run", run.name, "judgment", row.place)
    return query.address(path) if query else path


def key_of(row: JudgmentRow) -> TrajectoryKey:
    """Return the key of the trajectory that was judged."""
    return TrajectoryKey(
        benchmark=row.benchmark, agent=row.agent, task_id=row.task_id, attempt=row.attempt
    )


def row_record(run: OpenedRun, row: JudgmentRow) -> dict[str, object]:
    """Return a row for a program."""
    unsure = row.expert == -1
    verdicts = {
        "success": _truth(row.success),
        "expert": "unsure" if unsure else _truth(row.expert),
        "rule": _truth(row.rule),
    }
    links = {"link": row_link(run, row), "trajectory": trajectory_link(key_of(row))}
    hidden = ("id", "run", "flags", *verdicts)
    fields = {name: value for name, value in row._asdict().items() if name not in hidden}
    return {**fields, **verdicts, "wrong": row.wrong, **links}


def csv_lines(run: OpenedRun, query: TableQuery, places: Sequence[int] = ()) -> Iterator[bytes]:
    """Yield the filtered table as CSV, a header and a line a judgment; only those of ``places``,
    if there are any. Raises UserError as the index does."""
    wanted = set(places)
    with run.index.reading(EXPORT_SECONDS) as connection:
        head: list[str] = []
        for row in judgment_rows(connection, query.chosen, query.sorting):
            if wanted and row.place not in wanted:
                continue
            record = row_record(run, row)
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


def _truth(value: int | None) -> bool | None:
    return None if value is None else bool(value)
