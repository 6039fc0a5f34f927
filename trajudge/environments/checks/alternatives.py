"""States in which a task comes to something else: what a run must look at to rule them out.

An alternative differs from the profile in one cell that the answers' queries (or those of what
follows from the slots) read, and there the answers are others. Whoever has seen a page that is
different in an alternative has ruled it out; whoever has ruled all of them out has seen enough.
Only alternatives that the oracle's walk rules out are kept, a few of each sort: with each page that
it needs goes at least one that no other of its pages rules out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

from trajudge.environments.model.axes import open_state
from trajudge.environments.model.binding import parameters
from trajudge.environments.model.config import Config, Ui
from trajudge.environments.model.page import Page
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import App, Bound, Derive, Scenario
from trajudge.environments.model.state import AppState, Value

Place = tuple[str, Mapping[str, str]]  # a page and its arguments

ROWS = 1200  # of a table that are changed, evenly spread
TRIED = 40  # alternatives of a column that are looked at
OF_A_SORT = 2
OF_A_ROW = 2
MOST = 10
_WORD = re.compile(r"\w+")


class Cell(NamedTuple):
    """One cell and the value that it has in an alternative."""

    table: str
    key: Value
    column: str
    value: Value


def alternatives(
    app: App, config: Config, bound: Bound, interface: Ui, seen: Sequence[Place]
) -> list[Site]:
    """Return sites in alternative states; ``seen`` are the pages of the oracle's walk. The caller
    closes their states."""
    scenario = app.scenario(config.scenario)
    queries = _queries(scenario)
    if not queries:
        return []
    state = open_state(app, config)
    site = Site(app, state, interface)
    shown = [site.get(*place) for place in seen]
    sorts: dict[tuple[bool, ...], list[Cell]] = {}
    differing = state.attempt(
        lambda: list(_differing(app, scenario, bound, state, queries)), lambda _: False
    )
    for cell in (one for cells in differing for one in _spread(cells, TRIED)):
        with _changed(state, cell):
            sort = tuple(
                is_different(site, place, page) for place, page in zip(seen, shown, strict=True)
            )
        if any(sort):
            sorts.setdefault(sort, []).append(cell)
    state.close()
    # Those that few pages rule out say most.
    ranked = [cell for sort in sorted(sorts, key=sum) for cell in _spread(sorts[sort], OF_A_SORT)]
    return [_in_state(app, config, interface, cell) for cell in ranked[:MOST]]


def is_different(site: Site, place: Place, page: Page) -> bool:
    """Tell whether an alternative shows something else at a place; one that fails there does."""
    try:
        return site.get(*place) != page
    except (KeyError, TypeError, ValueError, IndexError):
        return True


def _in_state(app: App, config: Config, interface: Ui, cell: Cell) -> Site:
    state = open_state(app, config)
    state.change(cell.table, cell.key, **{cell.column: cell.value})
    return Site(app, state, interface)


def _queries(scenario: Scenario) -> list[str]:
    early = [a.sql for a in scenario.answers if a.kind != "code" and a.when == "before"]
    return [*early, *(slot.sql for slot in scenario.slots.values() if isinstance(slot, Derive))]


def _differing(
    app: App, scenario: Scenario, bound: Bound, state: AppState, queries: Sequence[str]
) -> Iterator[list[Cell]]:
    """Yield cells with values for which the task comes to something else: of each column that has
    any, two a row. Each column counts alone, else one that every row has (a topic) would leave no
    room for one that few rows have (what those of the topic cost)."""
    named = {word for sql in queries for word in _WORD.findall(sql)}
    right = _outcome(scenario, bound, state)
    for table in app.tables:
        if table.name not in named:
            continue
        columns = [name for name in table.names if name in named and name != table.key]
        values = {name: _values(state, table.name, name) for name in columns}
        rows = _spread(state.cells([table.name])[table.name], ROWS)
        for name in columns:
            at, differing = table.names.index(name), list[Cell]()
            for row in rows:
                cells = [Cell(table.name, row[0], name, v) for v in values[name] if v != row[at]]
                others = (c for c in cells if _comes_to(scenario, bound, state, c) != right)
                differing += islice(others, OF_A_ROW)
                if cells:
                    state.change(table.name, row[0], **{name: row[at]})
            if differing:
                yield differing


def _values(state: AppState, table: str, column: str) -> list[Value]:
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


def _comes_to(scenario: Scenario, bound: Bound, state: AppState, cell: Cell) -> object:
    """Return the outcome with the cell's value in the state, where the caller replaces it."""
    state.change(cell.table, cell.key, **{cell.column: cell.value})
    return _outcome(scenario, bound, state)


@contextmanager
def _changed(state: AppState, cell: Cell) -> Iterator[None]:
    """Have the cell's value in the state for a while."""
    state.db.execute("SAVEPOINT alternative")
    try:
        state.change(cell.table, cell.key, **{cell.column: cell.value})
        yield
    finally:
        state.db.execute("ROLLBACK TO alternative")
        state.db.execute("RELEASE alternative")


def _outcome(scenario: Scenario, bound: Bound, state: AppState) -> tuple[Any, ...]:
    """Return the answers, and the keys of what follows from the slots."""
    now, derived = dict(bound), []
    for name, slot in scenario.slots.items():
        if isinstance(slot, Derive):
            rows = state.records(slot.sql, **parameters(now))
            derived.append(tuple(next(iter(row.values())) for row in rows))
            now[name] = rows[0] if rows else bound[name]
    values = parameters(now)
    answers = tuple(
        tuple(sorted((row[0] for row in state.rows(a.sql, **values)), key=str))
        for a in scenario.answers
        if a.kind != "code" and a.when == "before"
    )
    return answers, tuple(derived)


def _spread(values: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many of them, evenly spread."""
    step = max(1, -(-len(values) // most))
    return list(values[::step])
