"""The state of one run: an application's tables in SQLite, in memory, dumped and compared.

Values reach SQL as parameters only. The same rows give the same dump in every process.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

import orjson

from trajudge.environments.model.schema import TableSchema

T = TypeVar("T")
Value = str | int
Rows = Mapping[str, Sequence[Sequence[Value]]]
Record = Mapping[str, Value]
Dump = Mapping[str, Mapping[str, Record]]


class TableRows(dict[str, Record]):
    """The rows of a table by key, not to be changed: states that hold the same share them."""

    @cached_property
    def digest(self) -> bytes:
        """The name of the rows: equal for equal rows."""
        return sha256(orjson.dumps(self, option=orjson.OPT_SORT_KEYS)).digest()


class AppState:
    """The tables of one run: ``rows`` and ``one`` read; ``add``, ``change``, ``remove`` write.

    ``known`` are tables as ``dump`` gives them that stand so in ``snapshot``. What was read of a
    table is kept until something is written to it: most runs write to two tables of a dozen.
    """

    def __init__(
        self,
        tables: Sequence[TableSchema],
        snapshot: bytes | None = None,
        known: Dump = MappingProxyType({}),
    ) -> None:
        self.tables = {table.name: table for table in tables}
        self._version: tuple[int, str] | None = None
        self._known = dict(known)
        self._traced = 0  # writes whose table is known
        # The server's thread is not the recorder's; each run's requests come one at a time.
        self.db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        if snapshot is not None:
            self.db.deserialize(snapshot)
            return
        for table in tables:
            self.db.execute(table.sql)

    def load(self, rows: Rows) -> None:
        """Insert whole rows, values in the order of the columns."""
        for name, records in rows.items():
            marks = ", ".join("?" * len(self.tables[name].columns))
            self.db.executemany(f'INSERT INTO "{name}" VALUES ({marks})', records)  # noqa: S608

    def snapshot(self) -> bytes:
        """Return the whole state, for ``AppState(tables, snapshot)``."""
        return self.db.serialize()

    def copy(self) -> AppState:
        """Return the same rows in a state of their own; the caller closes it."""
        known = {} if self.db.in_transaction else self._unwritten()
        return AppState(tuple(self.tables.values()), self.snapshot(), known)

    def close(self) -> None:
        self.db.close()

    @property
    def version(self) -> str:
        """A short name for the content: the same for the same rows. Rows are read again only when
        something was written or undone since."""
        writes = self.db.total_changes
        if self._version is not None and self._version[0] == writes:
            return self._version[1]
        name = digest(self.dump())
        if not self.db.in_transaction:  # what is undone counts as written still
            self._version = writes, name
        return name

    def attempt(self, work: Callable[[], T], succeeded: Callable[[T], bool]) -> T:
        """Give what ``work`` gives; whatever it wrote is undone where that is no success, and
        where it raises."""
        kept = False
        self.db.execute("SAVEPOINT attempt")
        try:
            outcome = work()
            kept = succeeded(outcome)
        finally:
            if not kept:
                self.db.execute("ROLLBACK TO attempt")
            self.db.execute("RELEASE attempt")
        return outcome

    def rows(self, sql: str, /, **values: Any) -> list[sqlite3.Row]:
        return self.db.execute(sql, values).fetchall()

    def records(self, sql: str, /, **values: Any) -> list[Record]:
        """Return the rows as mappings."""
        return [dict(row) for row in self.rows(sql, **values)]

    def one(self, sql: str, /, **values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self.db.execute(sql, values).fetchone()
        return row

    def value(self, sql: str, /, **values: Any) -> Any:
        """Return the first column of the first row, or None."""
        row = self.one(sql, **values)
        return None if row is None else row[0]

    def get(self, table: str, key: str) -> sqlite3.Row | None:
        """Return the row with this key."""
        return self.one(f'SELECT * FROM "{table}" WHERE "{self.tables[table].key}" = :key', key=key)  # noqa: S608

    def row(self, table: str, key: str) -> sqlite3.Row:
        """Return the row with this key, which is known to be there. Raises KeyError."""
        record = self.get(table, key)
        if record is None:
            raise KeyError(f"{table} {key}")
        return record

    def add(self, table: str, **values: Value) -> None:
        """Insert one row; every column is named."""
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join(f":{name}" for name in values)
        self._write(table, f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values)  # noqa: S608

    def change(self, table: str, key: Value, /, **values: Value) -> None:
        """Set columns of the row with this key."""
        sets = ", ".join(f'"{name}" = :{name}' for name in values)
        where = self.tables[table].key
        self._write(
            table,
            f'UPDATE "{table}" SET {sets} WHERE "{where}" = :key_',  # noqa: S608
            {**values, "key_": key},
        )

    def remove(self, table: str, key: Value) -> None:
        """Delete the row with this key."""
        where = self.tables[table].key
        self._write(table, f'DELETE FROM "{table}" WHERE "{where}" = :key', {"key": key})  # noqa: S608

    def _write(self, table: str, sql: str, values: Record) -> None:
        """Carry out a statement that writes to this table alone."""
        before = self.db.total_changes
        self.db.execute(sql, values)
        self._known.pop(table, None)
        if before == self._traced:
            self._traced = self.db.total_changes

    def _unwritten(self) -> dict[str, Mapping[str, Record]]:
        """Return what was read of tables that nothing was written to since."""
        writes = self.db.total_changes
        if writes != self._traced:  # past ``_write``
            self._known.clear()
            self._traced = writes
        return self._known

    def token(self, table: str) -> str:
        """Return a key that the table does not hold yet, opaque, the same for the same state."""
        count = self.value(f'SELECT count(*) FROM "{table}"')  # noqa: S608
        for salt in range(1000):
            key = token(table, "new", count, salt)
            if self.get(table, key) is None:
                return key
        raise RuntimeError(f"no free key in {table}")

    def cells(self, tables: Iterable[str]) -> dict[str, list[tuple[Value, ...]]]:
        """Return tables as bare rows in the order of their keys: quick to compare."""
        cursor = self.db.cursor()
        cursor.row_factory = None
        return {
            name: cursor.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall()  # noqa: S608
            for name in sorted(tables)
        }

    def dump(self) -> Dump:
        """Return every table, its rows by key, both in stable order. A table that nothing was
        written to since the last time is the same object: not to be changed."""
        known = self._unwritten()
        read: dict[str, Mapping[str, Record]] = {}
        for name, rows in self.cells(self.tables.keys() - known.keys()).items():
            names = self.tables[name].names
            read[name] = TableRows(
                (str(row[0]), dict(zip(names, row, strict=True))) for row in rows
            )
        both = {**known, **read}
        if not self.db.in_transaction:  # what is undone later is not kept
            known |= read
        return {name: both[name] for name in sorted(self.tables)}


def token(*parts: Any) -> str:
    """Return a short opaque key that neither counts nor sorts by what it names."""
    return sha256(json.dumps(parts).encode()).hexdigest()[:8]


def digest(dump: Dump) -> str:
    """Return a short name for a state: equal for equal states."""
    whole = sha256()
    for name in sorted(dump):
        rows = dump[name]
        whole.update(name.encode() + b"\0")
        whole.update((rows if isinstance(rows, TableRows) else TableRows(rows)).digest)
    return whole.hexdigest()[:16]


class Change(NamedTuple):
    """One row that appeared, went, or changed in ``columns``; ``before`` or ``after`` is empty
    where there was no such row."""

    kind: Literal["added", "removed", "changed"]
    table: str
    key: str
    before: Record
    after: Record

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that differ (all of them for a row that appeared or went)."""
        names = self.before or self.after
        return tuple(n for n in names if self.before.get(n) != self.after.get(n))


def difference(before: Dump, after: Dump) -> list[Change]:
    """Return what changed between two dumps of the same tables, in stable order."""
    changes: list[Change] = []
    for name in before:
        if before[name] is not after[name]:
            changes += _of_table(name, before[name], after[name])
    return changes


def _of_table(name: str, old: Mapping[str, Record], new: Mapping[str, Record]) -> Iterable[Change]:
    for key in sorted(old.keys() | new.keys()):
        if key not in new:
            yield Change("removed", name, key, old[key], {})
        elif key not in old:
            yield Change("added", name, key, {}, new[key])
        elif old[key] != new[key]:
            yield Change("changed", name, key, old[key], new[key])
