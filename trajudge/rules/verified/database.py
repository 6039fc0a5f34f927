"""One query in a database that cannot be changed by it.

Three walls, each of which would do for most databases: a query is a single SELECT without a word
that changes anything; the database is opened, or the transaction is begun, to read only where the
database knows that; and the transaction is rolled back.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from trajudge.trajectories.util.errors import MissingExtra, UserError
from trajudge.trajectories.util.safe_files import check_regular

MAX_ROWS = 10_000

Parameters: TypeAlias = Mapping[str, str | int | float | None]
Rows: TypeAlias = list[dict[str, Any]]

_SELECT = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
# Quotes are not read: what ends a text differs between databases, and what is taken for a text
# in one may be a command in another.
_CHANGES = re.compile(
    r"\b(insert|update|delete|merge|into|drop|alter|create|truncate|grant|revoke|call|exec|execute"
    r"|copy|attach|detach|pragma|vacuum)\b|;(?!\s*\Z)",
    re.IGNORECASE,
)
_READ_ONLY: Mapping[str, str] = {
    **dict.fromkeys(("postgresql", "mysql", "mariadb", "oracle"), "SET TRANSACTION READ ONLY"),
    "sqlite": "PRAGMA query_only = ON",
}


class NoRows(Exception):
    """The database did not answer: one clause that says why, without its password."""


def check_reads_only(query: str) -> None:
    """Raise UserError for a query that is no plain SELECT."""
    shown = query.strip()[:60]
    if not _SELECT.match(query):
        raise UserError(f"the probe's query {shown!r} is no SELECT: probes only read")
    if found := _CHANGES.search(query):
        raise UserError(
            f"the probe's query {shown!r} holds {found[0]!r}: probes only read, and a text in "
            "which such a word stands is given in parameters"
        )


def select(url: str, query: str, parameters: Parameters, seconds: float) -> Rows:
    """At most ``MAX_ROWS`` rows. ``sqlite:///FILE`` needs no library; other addresses are
    SQLAlchemy's. SQLite and PostgreSQL end after ``seconds``, others wait as long as their driver.

    Raises NoRows; UserError for a query that would not only read and for a driver that is not
    installed; MissingExtra without SQLAlchemy.
    """
    check_reads_only(query)
    if url.startswith("sqlite:///"):
        return _of_sqlite(Path(url.removeprefix("sqlite:///")), query, parameters, seconds)
    return _of_any(url, query, parameters, seconds)


def _opened(path: Path | str, seconds: float = 5.0) -> sqlite3.Connection:
    """Return the file, which is neither changed nor made."""
    check_regular(path)
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=seconds)


def _of_sqlite(path: Path, query: str, parameters: Parameters, seconds: float) -> Rows:
    deadline = time.monotonic() + seconds
    try:
        connection = _opened(path, seconds)
    except sqlite3.Error as error:
        raise NoRows(f"{path}: {error}") from error
    try:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        connection.execute(_READ_ONLY["sqlite"])
        cursor = connection.execute(query, parameters)
        names = [column[0] for column in cursor.description or ()]
        return [_row(names, row) for row in cursor.fetchmany(MAX_ROWS)]
    except sqlite3.Error as error:
        raise NoRows(f"{path}: {error}") from error
    finally:
        connection.close()


def _of_any(url: str, query: str, parameters: Parameters, seconds: float) -> Rows:
    try:
        import sqlalchemy  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("sqlalchemy", "sql", "A probe of this database") from error
    scheme = url.partition(":")[0]
    try:
        engine = _engine(sqlalchemy, url)
    except ImportError as error:
        raise UserError(
            f"the probe's database {scheme}: its driver is not installed: pip install {error.name}"
        ) from error
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise UserError(f"the probe's database {scheme}: no address SQLAlchemy knows") from error
    try:
        with engine.connect() as connection:
            if command := _READ_ONLY.get(engine.dialect.name):
                connection.exec_driver_sql(command)
            if engine.dialect.name == "postgresql":
                limit = max(1, int(seconds * 1000))
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = {limit}")
            rows = connection.execute(sqlalchemy.text(query), dict(parameters))
            found = [_row(list(rows.keys()), row) for row in rows.fetchmany(MAX_ROWS)]
            connection.rollback()
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise NoRows(f"the {scheme} database did not answer: {type(error).__name__}") from error
    finally:
        engine.dispose()
    return found


def _engine(sqlalchemy: Any, url: str) -> Any:
    """SQLite files are opened as above whatever the address says: its driver would make them."""
    parsed = sqlalchemy.engine.make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return sqlalchemy.create_engine(parsed)
    return sqlalchemy.create_engine("sqlite://", creator=lambda: _opened(parsed.database or ""))


def _row(names: Sequence[str], values: Any) -> dict[str, Any]:
    known = (str, int, float, bool, type(None))
    pairs = zip(names, values, strict=True)
    return {name: value if isinstance(value, known) else str(value) for name, value in pairs}
