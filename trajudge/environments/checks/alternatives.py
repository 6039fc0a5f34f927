"""States in which a task comes to something else: what a run must look at to rule them out.

An alternative differs from the profile in one cell that the answers' queries (or those of what
follows from the slots) read, and there the answers are others. Whoever has seen a page that is
different in an alternative has ruled it out; whoever has ruled all of them out has seen enough.
Only alternatives that the oracle's walk rules out are kept, a few of each sort: with each page that
it needs goes at least one that no other of its pages rules out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from trajudge.environments.checks.profiles import Reads, ReplayableState, words
from trajudge.environments.model.binding import parameters
from trajudge.environments.model.page import Page
from trajudge.environments.model.schema import TableSchema
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import Bound, Derive, Scenario
from trajudge.environments.model.state import Value

Place = tuple[str, Mapping[str, str]]  # a page and its arguments
_ReadsOf = Mapping[str, Mapping[tuple[object, ...], tuple[str, Mapping[str, Any]]]]  # by table

ROWS = 1200  # of a table that are changed, evenly spread
TRIED = 40  # alternatives of a column that are looked at
BLOCK = 24  # rows that are changed together first: most of them make no difference
OF_A_SORT = 2
OF_A_ROW = 2
MOST = 10


class Cell(NamedTuple):
    """One cell and the value that it has in an alternative."""

    table: str
    key: Value
    column: str
    value: Value


class Alternatives:
    """The alternatives of a task, each a cell. ``site`` is in the profile's own ``state``, which
    is changed for a moment only; ``seen`` are the pages of the oracle's walk."""

    def __init__(
        self,
        scenario: Scenario,
        bound: Bound,
        site: Site,
        state: ReplayableState,
        seen: Sequence[Place],
    ) -> None:
        self._site, self._state = site, state
        self._reads_other: dict[Cell, dict[tuple[object, ...], bool]] = {}
        self.cells: list[Cell] = []
        if not (queries := _queries(scenario)):
            return
        with self._state.rollback():
            differing = list(_differing(scenario, bound, self._state, queries))
        tables = {cell.table for cells in differing for cell in cells}
        shown = [(page, _by_table(reads, tables)) for page, reads in map(self._shown, seen)]
        sorts: dict[tuple[bool, ...], list[Cell]] = {}
        for cell in (one for cells in differing for one in _spread(cells, TRIED)):
            sort = tuple(
                self._differs(cell, place, *page) for place, page in zip(seen, shown, strict=True)
            )
            if any(sort):
                sorts.setdefault(sort, []).append(cell)
        # Those that few pages rule out say most.
        for sort in sorted(sorts, key=sum):
            self.cells += _spread(sorts[sort], OF_A_SORT)
        del self.cells[MOST:]

    def ruled_out(self, place: Place) -> tuple[Page, Reads, list[bool]]:
        """Return the page at a place, what was read for it and, of each alternative, whether it is
        another there."""
        page, reads = self._shown(place)
        of = _by_table(reads, {cell.table for cell in self.cells})
        return page, reads, [self._differs(cell, place, page, of) for cell in self.cells]

    def _shown(self, place: Place) -> tuple[Page, Reads]:
        """Return a page and what was read for it."""
        with self._state.noted() as reads:
            page = self._site.get(*place)
        return page, reads

    def _differs(self, cell: Cell, place: Place, page: Page, reads: _ReadsOf) -> bool:
        """Tell whether an alternative shows something else at a place; one that fails there does.
        A page that reads the same is the same."""
        known = self._reads_other.setdefault(cell, {})
        queries = reads[cell.table]
        unknown = {key: query for key, query in queries.items() if key not in known}
        if not unknown and not any(known[key] for key in queries):
            return False
        before = [self._state.rows(sql, **values) for sql, values in unknown.values()]
        with self._state.rollback():
            self._state.change(cell.table, cell.key, **{cell.column: cell.value})
            for (key, (sql, values)), rows in zip(unknown.items(), before, strict=True):
                known[key] = self._state.rows(sql, **values) != rows
            if not any(known[key] for key in queries):
                return False
            try:
                return self._site.get(*place) != page
            except (ArithmeticError, KeyError, TypeError, ValueError, IndexError):
                return True


def _by_table(reads: Reads, tables: Iterable[str]) -> _ReadsOf:
    """Return the reads of each table, each once."""
    return {
        table: {
            (sql, *values.values()): (sql, values) for sql, values in reads if table in words(sql)
        }
        for table in tables
    }


def _queries(scenario: Scenario) -> list[str]:
    early = [a.sql for a in scenario.answers if a.kind != "code" and a.when == "before"]
    return [*early, *(slot.sql for slot in scenario.slots.values() if isinstance(slot, Derive))]


def _differing(
    scenario: Scenario, bound: Bound, state: ReplayableState, queries: Sequence[str]
) -> Iterator[list[Cell]]:
    """Yield cells with values for which the task comes to something else: of each column that has
    any, two a row. Each column counts alone, else one that every row has (a topic) would leave no
    room for one that few rows have (what those of the topic cost)."""
    named = frozenset[str]().union(*map(words, queries))
    trial = _Trial(scenario, bound, state.db)
    for table in state.tables.values():
        if table.name not in named:
            continue
        rows = _spread(state.bare[table.name], ROWS)
        for name in (name for name in table.names if name in named and name != table.key):
            at, differing = table.names.index(name), list[Cell]()
            values = _values(state, table.name, name)
            for start in range(0, len(rows), BLOCK):
                block = rows[start : start + BLOCK]
                ends = (block[0][0], block[-1][0])
                some = [v for v in values if trial.differs(table, name, v, *ends)]
                for row in block if some else ():
                    differing += islice(
                        (
                            Cell(table.name, row[0], name, value)
                            for value in some
                            if value != row[at] and trial.differs(table, name, value, row[0])
                        ),
                        OF_A_ROW,
                    )
            if differing:
                yield differing


def _values(state: ReplayableState, table: str, column: str) -> list[Value]:
    """Return values to put into a column: the ends of its range, a step beyond, the commonest."""
    cells = state.rows(f'SELECT "{column}" AS v, count(*) AS n FROM "{table}" GROUP BY 1')  # noqa: S608
    values: list[Any] = [row["v"] for row in cells if row["v"] is not None]
    if not values:
        return []
    common = [row["v"] for row in sorted(cells, key=lambda row: -row["n"])[:3]]
    ends = [min(values, key=_rank), max(values, key=_rank)]
    beyond = [ends[1] + 1, max(0, ends[0] - 1)] if isinstance(ends[0], int) else []
    return list(dict.fromkeys([*ends, *beyond, *(v for v in common if v is not None)]))


def _rank(value: Value) -> tuple[bool, Any]:
    return isinstance(value, str), value


class _Trial:
    """What a task comes to if a column has another value in some rows: the answers, and the keys of
    what follows from the slots."""

    def __init__(self, scenario: Scenario, bound: Bound, db: sqlite3.Connection) -> None:
        self._cursor = db.cursor()
        self._cursor.row_factory = None
        self._values = parameters(bound)
        self._derived = [(n, s.sql) for n, s in scenario.slots.items() if isinstance(s, Derive)]
        self._asked = [a.sql for a in scenario.answers if a.kind != "code" and a.when == "before"]
        self._right = self._outcome()

    def differs(
        self, table: TableSchema, column: str, value: Value, first: Value, last: Value | None = None
    ) -> bool:
        """Tell whether it comes to something else with the value in one row, or in all rows whose
        keys are from ``first`` to ``last``. What no row changes, all of them together do not."""
        where = f'"{table.key}" BETWEEN ? AND ?'
        change = f'UPDATE "{table.name}" SET "{column}" = ? WHERE {where}'  # noqa: S608
        self._cursor.execute("SAVEPOINT trial")
        try:
            self._cursor.execute(change, (value, first, first if last is None else last))
            return self._outcome() != self._right
        finally:
            self._cursor.execute("ROLLBACK TO trial")
            self._cursor.execute("RELEASE trial")

    def _outcome(self) -> object:
        cursor, values, derived = self._cursor, dict(self._values), []
        for name, sql in self._derived:
            rows = cursor.execute(sql, values).fetchall()
            derived.append([row[0] for row in rows])
            if rows:
                values[name] = rows[0][0]
                columns = (column[0] for column in cursor.description)
                values |= {f"{name}_{c}": v for c, v in zip(columns, rows[0], strict=True)}
        answers = [
            sorted([row[0] for row in cursor.execute(sql, values)], key=str) for sql in self._asked
        ]
        return answers, derived


def _spread(values: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many of them, evenly spread."""
    step = max(1, -(-len(values) // most))
    return list(values[::step])
