"""Pages of rows: sorted, filtered, each begun behind the last row of the one before (keyset)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trajudge.eval.data.run_index.filters import Filter
from trajudge.trajectories.util.errors import UserError, did_you_mean

PAGE = 50
"""Rows of a page, unless told otherwise."""
MOST = 200

SORTS: Mapping[str, str] = {
    "place": "j.id",
    "task": "t.task_id",
    "benchmark": "t.benchmark",
    "agent": "t.agent",
    "judge": "j.judge",
    "success": "j.success",
    "expert": "j.expert",
    "rule": "j.rule",
    "score": "j.score",
    "status": "j.status",
    "cost": "j.cost",
    "tokens": "j.tokens",
    "seconds": "j.seconds",
}
"""What a table may be sorted by; ``-`` before a name: falling. Unknown values come last."""

_COLUMNS = """
j.id, j.run, j.place, t.benchmark, t.agent, t.task_id, t.attempt, j.judge, j.sample, j.status,
j.success, j.score, j.cost, j.tokens, j.seconds, j.flags, j.head, j.expert, j.rule
"""
_FROM = "from judgment j join trajectory t on t.id = j.trajectory"

Cursor = tuple[str | float | None, int]
"""The sorted value of a row, and its number."""


class JudgmentRow(NamedTuple):
    """A judgment as a table shows it; ``place`` is its line in the file of the ``run``."""

    id: int
    run: int
    place: int
    benchmark: str
    agent: str
    task_id: str
    attempt: int
    judge: str
    sample: int
    status: str
    success: int | None
    score: float | None
    cost: float | None
    tokens: int
    seconds: float | None
    flags: int
    head: str
    expert: int | None
    rule: int | None

    @property
    def wrong(self) -> str:
        """Name the mistake: "false positive", "false negative", "" for none."""
        if self.success is None or self.expert not in (0, 1) or self.success == self.expert:
            return ""
        return "false positive" if self.success else "false negative"


class JudgmentPage(NamedTuple):
    """Rows with the cursors of the pages beside them, None at either end."""

    rows: list[JudgmentRow]
    before: str | None
    after: str | None


class Sorting(NamedTuple):
    """A name of SORTS, and whether it falls."""

    name: str = "place"
    falling: bool = False

    def __str__(self) -> str:
        return f"{'-' if self.falling else ''}{self.name}"


def parse_sorting(text: str) -> Sorting:
    """Read ``cost`` or ``-cost``. Raises UserError for what nothing is sorted by."""
    name = text.removeprefix("-") or "place"
    if name not in SORTS:
        raise UserError(
            f"sort={text}: nothing is sorted by this{did_you_mean(name, SORTS)}; use one of "
            f"{', '.join(SORTS)}"
        )
    return Sorting(name, text.startswith("-"))


def judgment_page(
    connection: sqlite3.Connection,
    chosen: Filter,
    sorting: Sorting = Sorting(),  # noqa: B008 - immutable
    *,
    after: str = "",
    before: str = "",
    limit: int = PAGE,
) -> JudgmentPage:
    """Read the rows behind the cursor ``after``, or those in front of ``before``. Raises UserError
    for a cursor that is none."""
    limit = min(max(limit, 1), MOST)
    backwards = bool(before)
    sql, parameters = _selection(chosen, sorting, before or after, backwards)
    found = connection.execute(f"{sql} limit ?", (*parameters, limit + 1)).fetchall()
    more = len(found) > limit
    found = found[:limit]
    if backwards:
        found.reverse()
    if not found:
        return JudgmentPage([], None, None)
    first, last = _cursor(found[0]), _cursor(found[-1])
    return JudgmentPage(
        [JudgmentRow(*row[:-1]) for row in found],
        first if (more if backwards else bool(after)) else None,
        last if (backwards or more) else None,
    )


def judgments_beside(
    connection: sqlite3.Connection, chosen: Filter, sorting: Sorting, number: int
) -> tuple[JudgmentRow | None, JudgmentRow | None]:
    """Read the rows before and after the row ``number`` in a filtered and sorted table, in which it
    need not stand itself; None at either end. Raises UserError for a number of no row."""
    sql = f"select j.id, {SORTS[sorting.name]} {_FROM} where j.id = ?"
    row = connection.execute(sql, (number,)).fetchone()
    if row is None:
        raise UserError(f"There is no judgment {number:,} in this run.")
    cursor = _cursor(row)
    before = judgment_page(connection, chosen, sorting, before=cursor, limit=1).rows
    after = judgment_page(connection, chosen, sorting, after=cursor, limit=1).rows
    return next(iter(before), None), next(iter(after), None)


def judgment_rows(
    connection: sqlite3.Connection, chosen: Filter, sorting: Sorting
) -> Iterator[JudgmentRow]:
    """Yield all rows, as they are read."""
    sql, parameters = _selection(chosen, sorting, "", False)
    for row in connection.execute(sql, parameters):
        yield JudgmentRow(*row[:-1])


def count_judgments(connection: sqlite3.Connection, chosen: Filter) -> int:
    """Count the rows that a filter keeps."""
    clause = chosen.judgments()
    sql = f"select count(*) {_FROM} where {clause.sql}"
    return int(connection.execute(sql, clause.parameters).fetchone()[0])


def _selection(
    chosen: Filter, sorting: Sorting, cursor: str, backwards: bool
) -> tuple[str, tuple[str | float | None, ...]]:
    column = SORTS[sorting.name]
    clause = chosen.judgments()
    beyond, bound = _beyond(column, sorting.falling, cursor, backwards)
    falls = sorting.falling != backwards
    nulls, way = "first" if backwards else "last", "desc" if falls else "asc"
    order = f"{column} {way} nulls {nulls}, j.id {'desc' if backwards else 'asc'}"
    if sorting.name == "place":
        order = f"j.id {way}"
    return (
        f"select {_COLUMNS}, {column} {_FROM} where ({clause.sql}) and ({beyond}) order by {order}",
        (*clause.parameters, *bound),
    )


def _beyond(
    column: str, falling: bool, cursor: str, backwards: bool
) -> tuple[str, tuple[str | float | None, ...]]:
    """Make the condition on rows behind a cursor (``backwards``: in front of it)."""
    if not cursor:
        return "1", ()
    value, number = _read_cursor(cursor)
    later = "<" if backwards else ">"
    if column == "j.id":
        return f"j.id {'<' if falling != backwards else '>'} ?", (number,)
    if value is None:
        same = f"({column} is null and j.id {later} ?)"
        return (f"{column} is not null or {same}" if backwards else same), (number,)
    sign = "<" if falling != backwards else ">"
    unknown = "" if backwards else f" or {column} is null"
    tie = f"({column} = ? and j.id {later} ?)"
    return f"{column} {sign} ? or {tie}{unknown}", (value, value, number)


def _cursor(row: sqlite3.Row) -> str:
    return json.dumps([row[-1], row[0]], separators=(",", ":"))


def _read_cursor(text: str) -> Cursor:
    try:
        value, number = json.loads(text)
        str(value).encode()
    except (ValueError, TypeError, RecursionError):
        value, number = None, None
    fine = isinstance(value, str | int | float | None) and isinstance(number, int)
    if not fine or abs(number) >= 2**63 or (isinstance(value, int) and abs(value) >= 2**63):
        raise UserError("This page's address was changed: go back to the beginning of the table.")
    return value, number
