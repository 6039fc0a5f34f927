"""The state of one run: an application's tables in SQLite, in memory, dumped and compared.

Values reach SQL as parameters only. The same rows give the same dump in every process.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeVar

from trajudge.environments.model.schema import TableSchema

T = TypeVar("T")
Value = str | int
Rows = Mapping[str, Sequence[Sequence[Value]]]
Record = Mapping[str, Value]
Dump = Mapping[str, Mapping[str, Record]]


class AppState:
    """The tables of one run: ``rows`` and ``one`` read; ``add``, ``change``, ``remove`` write."""

    def __init__(self, tables: Sequence[TableSchema], snapshot: bytes | None = None) -> None:
        self.tables = {table.name: table for table in tables}
        self._version: tuple[int, str] | None = None
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

    def close(self) -> None:
        self.db.close()

    @property
    def version(self) -> str:
        """A short name for the content: the same for the same rows. Rows are read again only when
        something was written or undone since."""
        writes = self.db.total_changes
        if self._version is None or self._version[0] != writes:
            self._version = writes, digest(self.dump())
        return self._version[1]

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
                self._version = None
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
        found = self.get(table, key)
        if found is None:
            raise KeyError(f"{table} {key}")
        return found

    def add(self, table: str, **values: Value) -> None:
        """Insert one row; every column is named."""
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join(f":{name}" for name in values)
        self.db.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', values)  # noqa: S608

    def change(self, table: str, key: Value, /, **values: Value) -> None:
        """Set columns of the row with this key."""
        sets = ", ".join(f'"{name}" = :{name}' for name in values)
        where = self.tables[table].key
        self.db.execute(
            f'UPDATE "{table}" SET {sets} WHERE "{where}" = :key_',  # noqa: S608
            {**values, "key_": key},
        )

    def remove(self, table: str, key: Value) -> None:
        """Delete the row with this key."""
        self.db.execute(f'DELETE FROM "{table}" WHERE "{self.tables[table].key}" = ?', (key,))  # noqa: S608

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
        """Return every table, its rows by key, both in stable order."""
        dumped: dict[str, dict[str, Record]] = {}
        for name, rows in self.cells(self.tables).items():
            names = self.tables[name].names
            dumped[name] = {str(row[0]): dict(zip(names, row, strict=True)) for row in rows}
        return dumped


def token(*parts: Any) -> str:
    """Return a short opaque key that neither counts nor sorts by what it names."""
    return sha256(json.dumps(parts).encode()).hexdigest()[:8]


def digest(dump: Dump) -> str:
    """Return a short name for a state: equal for equal states."""
    return sha256(json.dumps(dump, sort_keys=True).encode()).hexdigest()[:16]


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
