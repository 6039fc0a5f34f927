"""What an application's tables hold, as data: SQLite's definition and typed rows follow from it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["token", "text", "int", "money", "date", "flag", "ref"]
_SQL = {"int": "INTEGER", "money": "INTEGER", "flag": "INTEGER"}


class TableSchema(NamedTuple):
    """A table. Its first column is its key. Money is in cents, a date is ISO text, a flag 0 or 1,
    a token an opaque key, a ref the token of a row elsewhere."""

    name: str
    columns: tuple[tuple[str, Kind], ...]

    @property
    def key(self) -> str:
        return self.columns[0][0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def sql(self) -> str:
        """The CREATE TABLE statement."""
        columns = [f'"{name}" {_SQL.get(kind, "TEXT")} NOT NULL' for name, kind in self.columns]
        return f'CREATE TABLE "{self.name}" ({", ".join(columns)}, PRIMARY KEY ("{self.key}"))'


def table(name: str, /, **columns: Kind) -> TableSchema:
    """Return a table by keyword: ``table("product", id="token", name="text", price="money")``."""
    return TableSchema(name, tuple(columns.items()))
