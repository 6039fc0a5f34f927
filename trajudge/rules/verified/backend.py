"""The state of a site's back end, asked before and after a run: over REST, or by a query in SQL.

A probe is asked for its reply, a check (``BackendCheck``) compares values in it. Probes only
read: GET requests, and queries that change nothing (``rules.verified.database``).
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from trajudge.rules.errors import BadPattern
from trajudge.rules.limits import bounded_json
from trajudge.rules.values import InvalidValue, equal
from trajudge.rules.verdict import Assertion, Outcome, decided
from trajudge.rules.verified.database import NoRows, select
from trajudge.rules.verified.dataset import BackendCheck, Task
from trajudge.rules.verified.network.addresses import kind_of
from trajudge.rules.verified.network.jsonpath import find
from trajudge.trajectories.util.errors import UserError

MAX_REPLY = 8 * 2**20


class RestProbe(Struct, frozen=True, kw_only=True, tag_field="kind", tag="rest"):
    """A GET of ``url``; ``headers`` may carry a token. The reply is JSON."""

    url: str
    headers: dict[str, str] = {}
    seconds: float = 10.0


class SqlProbe(Struct, frozen=True, kw_only=True, tag_field="kind", tag="sql"):
    """One SELECT in the database at ``url`` (``sqlite:///FILE``, or what SQLAlchemy knows). The
    reply is a list of rows, each an object."""

    url: str
    query: str
    parameters: dict[str, str | int | float | None] = {}
    seconds: float = 10.0


class State(Struct, frozen=True, kw_only=True):
    """The replies of one probe. ``before`` is None where nobody asked before the run."""

    after: Any = None
    before: Any = None
    failure: str = ""


class Unanswered(Exception):
    """The probe got no reply that can be read: one clause that says why, without its secrets."""


def ask(probe: RestProbe | SqlProbe) -> Any:
    """Return the probe's reply. Raises Unanswered; UserError for a probe that would not only
    read."""
    if isinstance(probe, RestProbe):
        return _ask_rest(probe)
    return _ask_sql(probe)


def captured(
    probes: Mapping[str, RestProbe | SqlProbe], before: Mapping[str, Any] | None = None
) -> dict[str, State]:
    """Return what every probe says now, beside what it said before the run."""
    states = {}
    for name, probe in probes.items():
        earlier = (before or {}).get(name)
        try:
            states[name] = State(after=ask(probe), before=earlier)
        except Unanswered as error:
            states[name] = State(before=earlier, failure=str(error))
    return states


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could lead the request, and its token, to another host."""

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
    """Yield the body, as long as it is neither too long nor too slow."""
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
    """Yield what the task's checks say of the probes' replies; unknown where there is none."""
    for index, check in enumerate(task.backend_checks):
        name = f"backend.{index + 1}"
        state = (states or {}).get(check.probe)
        if state is None or state.failure:
            reason = state.failure if state else f"the probe {check.probe!r} was not asked"
            yield Assertion(name=name, outcome=Outcome.UNKNOWN, reason=reason)
            continue
        if check.changed is not None:
            yield _changed(check, state, f"{name}.changed")
        for path, expected in check.expected.items():
            yield _compared(check, path, expected, state.after, f"{name}.{path}")


def _changed(check: BackendCheck, state: State, name: str) -> Assertion:
    if state.before is None:
        reason = "the probe was not asked before the run"
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
        found = find(path, reply)
    except BadPattern as error:
        return Assertion(name=name, outcome=Outcome.UNKNOWN, reason=str(error))
    if not found:
        held = expected is None
        outcome = Outcome.PASS if held else Outcome.FAIL
        reason = "" if held else "the reply does not hold it"
        return Assertion(name=name, outcome=outcome, reason=reason, expected=expected)
    value = found[0] if len(found) == 1 else found
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
