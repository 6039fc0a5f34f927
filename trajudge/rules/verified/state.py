"""Probes of a site's back end before and after a run, over REST and in databases."""

from __future__ import annotations

import re
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType

from trajudge.rules.files import decode, read_bytes, write_json
from trajudge.rules.limits import BadPattern, bounded_json
from trajudge.rules.values import InvalidValue, equal
from trajudge.rules.verdict import Assertion, Outcome, decided
from trajudge.rules.verified.network import find, kind_of
from trajudge.rules.verified.tasks import BackendCheck, Task
from trajudge.util.errors import MissingExtra, UserError
from trajudge.util.files import check_regular

MAX_ROWS = 10_000
Parameters: TypeAlias = Mapping[str, str | int | float | None]
Rows: TypeAlias = list[dict[str, Any]]
_SELECT = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)

# Quotes are not parsed: the end of a text differs between databases, so that a text in one may be
# a command in another.
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
    """The database gave no result: one clause with the reason, without its password."""


def check_reads_only(query: str) -> None:
    """Raise UserError for a query that is not a plain SELECT."""
    shown = query.strip()[:60]
    if not _SELECT.match(query):
        raise UserError(f"the probe's query {shown!r} is not a SELECT: probes only read")
    if match := _CHANGES.search(query):
        raise UserError(
            f"the probe's query {shown!r} holds {match[0]!r}: probes only read; give texts with "
            "such words in parameters"
        )


def select(url: str, query: str, parameters: Parameters, seconds: float) -> Rows:
    """Return at most ``MAX_ROWS`` rows. ``sqlite:///FILE`` needs no library; other addresses are
    SQLAlchemy's. Queries of SQLite and PostgreSQL end after ``seconds``; others may take as long as
    their driver allows.

    Raises NoRows; UserError for a query that may write and for a driver that is not installed;
    MissingExtra without SQLAlchemy.
    """
    check_reads_only(query)
    if url.startswith("sqlite:///"):
        return _of_sqlite(Path(url.removeprefix("sqlite:///")), query, parameters, seconds)
    return _of_any(url, query, parameters, seconds)


def _opened(path: Path | str, seconds: float = 5.0) -> sqlite3.Connection:
    """Open the file read-only; it is not created."""
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
            results = [_row(list(rows.keys()), row) for row in rows.fetchmany(MAX_ROWS)]
            connection.rollback()
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise NoRows(f"the {scheme} database did not answer: {type(error).__name__}") from error
    finally:
        engine.dispose()
    return results


def _engine(sqlalchemy: Any, url: str) -> Any:
    """Return an engine; SQLite files are opened read-only, because SQLAlchemy's driver would
    create them."""
    parsed = sqlalchemy.engine.make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return sqlalchemy.create_engine(parsed)
    return sqlalchemy.create_engine("sqlite://", creator=lambda: _opened(parsed.database or ""))


def _row(names: Sequence[str], values: Any) -> dict[str, Any]:
    known = (str, int, float, bool, type(None))
    pairs = zip(names, values, strict=True)
    return {name: value if isinstance(value, known) else str(value) for name, value in pairs}


MAX_REPLY = 8 * 2**20


class RestProbe(Struct, frozen=True, kw_only=True, tag_field="kind", tag="rest"):
    """A GET of ``url``; ``headers`` may have a token. The reply is JSON."""

    url: str
    headers: dict[str, str] = {}
    seconds: float = 10.0


class SqlProbe(Struct, frozen=True, kw_only=True, tag_field="kind", tag="sql"):
    """One SELECT in the database at ``url`` (``sqlite:///FILE``, or an address of SQLAlchemy).
    The reply is a list of rows, each an object."""

    url: str
    query: str
    parameters: dict[str, str | int | float | None] = {}
    seconds: float = 10.0


class State(Struct, frozen=True, kw_only=True):
    """The replies of one probe. ``before`` is None if none was recorded before the run."""

    after: Any = None
    before: Any = None
    failure: str = ""


class Unanswered(Exception):
    """The probe got no readable reply: one clause with the reason, without its secrets."""


def ask(probe: RestProbe | SqlProbe) -> Any:
    """Return the probe's reply. Raises Unanswered; UserError for a probe that may write."""
    if isinstance(probe, RestProbe):
        return _ask_rest(probe)
    return _ask_sql(probe)


def captured(
    probes: Mapping[str, RestProbe | SqlProbe], before: Mapping[str, Any] | None = None
) -> dict[str, State]:
    """Return the current replies of all probes, with those from before the run."""
    states = {}
    for name, probe in probes.items():
        earlier = (before or {}).get(name)
        try:
            states[name] = State(after=ask(probe), before=earlier)
        except Unanswered as error:
            states[name] = State(before=earlier, failure=str(error))
    return states


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which could send the request and its token to another host."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


def _ask_rest(probe: RestProbe) -> Any:
    if urlsplit(probe.url).scheme not in ("http", "https"):
        raise UserError(f"the probe's address {probe.url[:60]!r} is not http:// or https://")
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        probe.url, headers={"Accept": "application/json", **probe.headers}
    )
    opener = urllib.request.build_opener(_NoRedirect)
    deadline = time.monotonic() + probe.seconds
    try:
        with opener.open(request, timeout=probe.seconds) as reply:
            data = b"".join(_chunks(reply, deadline))
    except urllib.error.HTTPError as error:
        raise Unanswered(f"{_host(probe.url)} answered {error.code}") from error
    except (OSError, ValueError) as error:
        raise Unanswered(f"{_host(probe.url)} did not answer: {type(error).__name__}") from error
    try:
        value = msgspec.json.decode(data)
        bounded_json(value)
    except (msgspec.DecodeError, InvalidValue, RecursionError, UnicodeError) as error:
        raise Unanswered(f"{_host(probe.url)} did not answer with JSON") from error
    return value


def _chunks(reply: Any, deadline: float) -> Iterator[bytes]:
    """Yield the body, within the limits of size and time."""
    size = 0
    while chunk := reply.read1(65_536):
        size += len(chunk)
        if size > MAX_REPLY:
            raise ValueError("too long")
        if time.monotonic() > deadline:
            raise TimeoutError("too slow")
        yield chunk


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _ask_sql(probe: SqlProbe) -> Any:
    try:
        return select(probe.url, probe.query, probe.parameters, probe.seconds)
    except NoRows as error:
        raise Unanswered(str(error)) from error


def backend_assertions(task: Task, states: Mapping[str, State] | None) -> Iterator[Assertion]:
    """Yield the results of the task's checks on the probes' replies; unknown without a reply."""
    for index, check in enumerate(task.backend_checks):
        name = f"backend.{index + 1}"
        state = (states or {}).get(check.probe)
        if state is None or state.failure:
            reason = state.failure if state else f"the probe {check.probe!r} was not recorded"
            yield Assertion(name=name, outcome=Outcome.UNKNOWN, reason=reason)
            continue
        if check.changed is not None:
            yield _changed(check, state, f"{name}.changed")
        for path, expected in check.expected.items():
            yield _compared(check, path, expected, state.after, f"{name}.{path}")


def _changed(check: BackendCheck, state: State, name: str) -> Assertion:
    if state.before is None:
        reason = "the probe was not recorded before the run"
        return Assertion(name=name, outcome=Outcome.UNKNOWN, reason=reason)
    held = (state.before != state.after) is check.changed
    return Assertion(
        name=name,
        outcome=Outcome.PASS if held else Outcome.FAIL,
        reason="" if held else f"the state {'did not change' if check.changed else 'changed'}",
        expected=check.changed,
    )


def _compared(check: BackendCheck, path: str, expected: Any, reply: Any, name: str) -> Assertion:
    try:
        actual = find(path, reply)
    except BadPattern as error:
        return Assertion(name=name, outcome=Outcome.UNKNOWN, reason=str(error))
    if not actual:
        held = expected is None
        outcome = Outcome.PASS if held else Outcome.FAIL
        reason = "" if held else "the reply does not hold it"
        return Assertion(name=name, outcome=outcome, reason=reason, expected=expected)
    value = actual[0] if len(actual) == 1 else actual
    match = equal(kind_of(check.results_schema, path), expected, value)
    return Assertion(
        name=name,
        outcome=decided(match.equal),
        reason=match.reason,
        expected=expected,
        found=value,
        expected_normalised=match.expected,
        found_normalised=match.actual,
    )


STATE_FILE = "state.json"
_NOT_ASKED = "the probe was not recorded after the run"


class _Recorded(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The recorded replies of one probe."""

    before: Any | UnsetType = UNSET
    after: Any | UnsetType = UNSET
    failure: str = ""


def load_probes(path: Path) -> dict[str, RestProbe | SqlProbe]:
    """Read probes by name from a JSON object. Raises UserError."""
    probes: dict[str, RestProbe | SqlProbe] = decode(
        read_bytes(path), dict[str, RestProbe | SqlProbe], path
    )
    return probes


def run_states(file: Path | None, now: Mapping[str, State]) -> dict[str, State]:
    """Return the states of one run: recorded in ``file``, else the current replies ``now``.
    Raises UserError for a file that cannot be read."""
    recorded = _read(file) if file else {}
    names = sorted(recorded.keys() | now.keys())
    return {name: _state(recorded.get(name, _Recorded()), now.get(name)) for name in names}


def _state(recorded: _Recorded, now: State | None) -> State:
    before = None if recorded.before is UNSET else recorded.before
    if recorded.failure:
        return State(before=before, failure=recorded.failure)
    if recorded.after is not UNSET:
        return State(after=recorded.after, before=before)
    if now is None:
        return State(before=before, failure=_NOT_ASKED)
    return msgspec.structs.replace(now, before=before)


def _read(file: Path) -> dict[str, _Recorded]:
    read: dict[str, _Recorded] = decode(read_bytes(file), dict[str, _Recorded], file)
    return read


def record(
    folder: Path, probes: Mapping[str, RestProbe | SqlProbe], when: Literal["before", "after"]
) -> dict[str, State]:
    """Write the probes' replies into the run's folder; replies of the other moment are kept. A
    missing reply is recorded as such. Raises UserError."""
    file = folder / STATE_FILE
    recorded = _read(file) if file.exists() else {}
    replies = captured(probes)
    for name, reply in replies.items():
        earlier = recorded.get(name, _Recorded())
        value: Any = UNSET if reply.failure else reply.after
        if when == "before":
            recorded[name] = msgspec.structs.replace(earlier, before=value)
        else:
            recorded[name] = msgspec.structs.replace(earlier, after=value, failure=reply.failure)
    write_json(file, recorded)
    return replies
