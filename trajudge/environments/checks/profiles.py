"""What follows from a data profile alone, computed once: state, common values, order of keys."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeVar

from trajudge.environments.model.axes import profile
from trajudge.environments.model.binding import parameters
from trajudge.environments.model.config import Config
from trajudge.environments.model.schema import TableSchema
from trajudge.environments.model.spec import AnswerSpec, App, Bound, Scenario
from trajudge.environments.model.state import AppState, Change, Dump, Record, Value, difference
from trajudge.environments.verify.truth import column, written

ROWS = 8  # fewer rows may be in order by chance
REMEMBERED = 20_000  # results of queries, a profile
Cells = tuple[Value, ...]
Reads = list[tuple[str, Mapping[str, Any]]]  # queries and their values
R = TypeVar("R")
_SELECTED = re.compile(r"SELECT\s+(\w+)\s+FROM\s+(\w+)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_NAMED = re.compile(r":(\w+)")


class ReplayableState(AppState):
    """A state, of a profile as a rule, which checks share: what a query gave is remembered for as
    long as nothing has changed, and changes are undone (``rollback``)."""

    def __init__(
        self,
        tables: Sequence[TableSchema],
        snapshot: bytes,
        known: Dump = MappingProxyType({}),
    ) -> None:
        super().__init__(tables, snapshot, known)
        self._remembered: dict[tuple[Any, ...], list[sqlite3.Row]] = {}
        self._recorded: dict[tuple[Any, ...], list[Record]] = {}
        self._untouched = self.db.total_changes
        self._written: dict[str, int] = {}
        self.dumped = self.dump()
        self._notes: Reads | None = None

    @cached_property
    def bare(self) -> dict[str, list[Cells]]:
        """The rows of ``dumped`` without names, in the order of their keys."""
        return {
            name: [tuple(row.values()) for row in rows.values()]
            for name, rows in self.dumped.items()
        }

    @property
    def modified(self) -> bool:
        return self.db.total_changes != self._untouched

    def rows(self, sql: str, /, **values: Any) -> list[sqlite3.Row]:
        return self._unless_modified(self._remembered, super().rows, sql, values)

    def records(self, sql: str, /, **values: Any) -> list[Record]:
        return self._unless_modified(self._recorded, super().records, sql, values)

    def _unless_modified(
        self,
        known: dict[tuple[Any, ...], list[R]],
        read: Callable[..., list[R]],
        sql: str,
        values: Mapping[str, Any],
    ) -> list[R]:
        """Read, or repeat what was read before, as long as nothing has changed."""
        if self.modified:
            return read(sql, **values)
        if self._notes is not None:
            self._notes.append((sql, values))
        key = (sql, *(values[name] for name in _names(sql)))
        if key not in known:
            if len(known) >= REMEMBERED:
                known.clear()
            known[key] = read(sql, **values)
        return list(known[key])

    def one(self, sql: str, /, **values: Any) -> sqlite3.Row | None:
        if self.modified:
            return super().one(sql, **values)
        return next(iter(self.rows(sql, **values)), None)

    def add(self, table: str, **values: Value) -> None:
        with self._writing(table):
            super().add(table, **values)

    def change(self, table: str, key: Value, /, **values: Value) -> None:
        with self._writing(table):
            super().change(table, key, **values)

    def remove(self, table: str, key: Value) -> None:
        with self._writing(table):
            super().remove(table, key)

    @contextmanager
    def noted(self) -> Iterator[Reads]:
        """Note what is read in here."""
        reads: Reads = []
        self._notes = reads
        try:
            yield reads
        finally:
            self._notes = None

    @contextmanager
    def _writing(self, table: str) -> Iterator[None]:
        """Count the rows written, by table."""
        before = self.db.total_changes
        yield
        self._written[table] = self._written.get(table, 0) + self.db.total_changes - before

    @contextmanager
    def rollback(self) -> Iterator[None]:
        """Whatever happens in here is undone."""
        self.db.execute("BEGIN")
        try:
            yield
        finally:
            self.db.execute("ROLLBACK")
            self._untouched = self._traced = self.db.total_changes
            self._written, self._known = {}, dict(self.dumped)

    def changes(self) -> list[Change]:
        """Return what is different from the profile now; tables that nothing was written to are not
        looked into."""
        if not self.modified:
            return []
        known = sum(self._written.values()) == self.db.total_changes - self._untouched
        now = self.cells(self._written if known else self.tables)
        before, after = {}, {}
        for name, rows in now.items():
            if rows != self.bare[name]:
                before[name] = self._beyond(name, self.bare[name], rows)
                after[name] = self._beyond(name, rows, self.bare[name])
        return difference(before, after)

    def _beyond(self, table: str, some: list[Cells], others: list[Cells]) -> dict[str, Record]:
        """Return the rows that the others do not hold, by key."""
        names, known = self.tables[table].names, set(others)
        return {str(row[0]): dict(zip(names, row, strict=True)) for row in some if row not in known}


@lru_cache(maxsize=1024)
def _names(sql: str) -> tuple[str, ...]:
    """Return the parameters that a query names."""
    return tuple(dict.fromkeys(_NAMED.findall(sql)))


def tables_read(reads: Reads) -> frozenset[str]:
    """Return the words of queries, the names of the tables that they read among them."""
    return frozenset[str]().union(*(words(sql) for sql, _ in reads))


@lru_cache(maxsize=4096)
def words(sql: str) -> frozenset[str]:
    """Return the words of a query."""
    return frozenset(_WORD.findall(sql))


@lru_cache(maxsize=256)
def replayable_state(app: App, number: int, seed: int) -> ReplayableState:
    """Return the state of a profile, to be read and tried out."""
    return ReplayableState(app.tables, profile(app, number, seed))


def answers(state: AppState, answer: AnswerSpec, bound: Bound) -> list[Any]:
    """Return the different values that the state gives for an answer."""
    cells = column(state, answer.sql, parameters(bound))
    return sorted({cell for cell in cells if cell is not None}, key=str)


def most_common(
    app: App, config: Config, scenario: Scenario, bound: Bound, state: AppState
) -> Iterator[str]:
    """Yield what somebody would say who always names the most common value: of the names that an
    answer is chosen from, else of the column that it is read from."""
    for answer in scenario.answers:
        if answer.among:
            names = column(state, answer.among, parameters(bound))
            yield from _top(tuple(map(str, names)))
        elif selected := _SELECTED.match(answer.sql):
            values = _values(app, config.profile, config.seed, selected[2], selected[1])
            yield from (written(answer.kind, value) for value in _top(values))


@lru_cache(maxsize=1024)
def _values(app: App, number: int, seed: int, table: str, name: str) -> tuple[Any, ...]:
    rows = replayable_state(app, number, seed).dumped.get(table, {})
    return tuple(row[name] for row in rows.values() if name in row)


@lru_cache(maxsize=4096)
def _top(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the most common value, if one is found more often than the others."""
    ranked = Counter(values).most_common(2)
    if len(values) > 1 and (len(ranked) == 1 or ranked[0][1] > ranked[1][1]):
        return (ranked[0][0],)
    return ()


@lru_cache(maxsize=256)
def ordered_key(app: App, number: int, seed: int) -> str:
    """``TABLE sort by COLUMN`` where the opaque keys of a table come in the order of a column; ""
    if none do. Keys that are asked for in an address would then tell which row has the most."""
    for table in app.tables:
        rows = list(
            replayable_state(app, number, seed).dumped[table.name].values()
        )  # in the order of their keys
        if len(rows) < ROWS or dict(table.columns)[table.key] != "token":
            continue
        for name, kind in table.columns[1:]:
            values = [row[name] for row in rows]
            if kind in ("int", "money", "date") and _monotone(values):
                return f"{table.name} sort by {name}"
    return ""


def _monotone(values: list[Any]) -> bool:
    rises = [(a < b) - (a > b) for a, b in pairwise(values)]
    return any(rises) and (min(rises) >= 0 or max(rises) <= 0)
