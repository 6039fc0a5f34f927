"""Network checks as the released package makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from trajudge.rules.values import Mode, equal, normalise
from trajudge.rules.verdict import Assertion, checked
from trajudge.rules.verified.dataset import NetworkCheck, Task
from trajudge.rules.verified.network.addresses import kind_of
from trajudge.rules.verified.network.bodies import document, unpacked
from trajudge.rules.verified.network.events import Event, Trace
from trajudge.rules.verified.network.jsonpath import compiled, find
from trajudge.rules.verified.network.patterns import found_at_start, is_pattern, searches
from trajudge.rules.verified.network.sites import Binding
from trajudge.rules.verified.release import ReleaseError, or_error
from trajudge.rules.verified.release.addresses import (
    Address,
    address,
    bind,
    bound_text,
    matches,
    same_base,
)

_UNBOUND = frozenset({"base64", "markdown"})
"""Kinds in whose texts the package leaves the sites' addresses as they are."""


def network_assertions(task: Task, trace: Trace, binding: Binding) -> list[Assertion]:
    """Return one assertion a check; one that the package ends with an error says so."""
    return [
        assertion
        for index, check in enumerate(task.network_checks)
        for assertion in or_error(
            partial(_checked, task, check, trace, binding, f"network.{index + 1}")
        )
    ]


def _checked(
    task: Task, check: NetworkCheck, trace: Trace, binding: Binding, name: str
) -> list[Assertion]:
    """Return the one assertion of a check. Raises ReleaseError, InvalidValue."""
    events = _candidates(task, check, trace, binding)
    chosen = events[-1:] if check.last_event_only else events
    if any(event.status is None for event in chosen):
        raise ReleaseError("a request without a status")
    _readable(check, binding)
    if check.should_not_exist:
        reason = f"{len(events)} events where none were expected"
        return [_made(f"{name}.absence", not events, reason, check, events)]
    if not events:
        return [_made(f"{name}.url", False, "no such event", check, events)]
    failures = [next(_failures(check, event, binding), "") for event in chosen]
    held = "" in failures
    label = name if held else f"{name}.{failures[-1]}"
    return [_made(label, held, f"the {failures[-1]} differs", check, chosen)]


def _readable(check: NetworkCheck, binding: Binding) -> None:
    """Raise for a specification that the package cannot read, whatever the run did."""
    _expected(check, binding)
    schema = check.post_data_schema or {}
    for key, expected in (check.expected.post_data or {}).items():
        if expected is None:
            continue
        declared = (schema.get("properties") or {}).get(key) or {}
        several = declared.get("type") == "array" and isinstance(expected, list)
        for value in expected if several else [expected]:
            normalise(kind_of(schema, key), value, mode=Mode.RELEASE)


def _made(
    name: str, held: bool, reason: str, check: NetworkCheck, events: Sequence[Event]
) -> Assertion:
    found = events[-1].url if events else None
    return checked(name, held, reason, list(check.expected.urls), found)


def _expected(check: NetworkCheck, binding: Binding) -> list[Address]:
    query = check.expected.query_params
    return [address(url, check, binding, query, expected=True) for url in check.expected.urls]


def _candidates(task: Task, check: NetworkCheck, trace: Trace, binding: Binding) -> Sequence[Event]:
    answer = task.answer_check
    navigates = answer is not None and answer.expected.task_type == "navigate"
    if any(flaw.lost for flaw in trace.flaws):
        raise ReleaseError(f"the trace's {trace.flaws[0]}")
    if navigates and check.expected.http_method == "GET":
        for event in trace.filed:
            if event.entry.request.method == "GET":
                _written_headers(event)
        return trace.release_navigations[-1:]
    method = check.expected.http_method.upper()
    wanted = _expected(check, binding)
    return [
        event
        for event in trace.filed
        if event.method == method and _fits(check, event, wanted, binding)
    ]


def _fits(check: NetworkCheck, event: Event, wanted: list[Address], binding: Binding) -> bool:
    found = address(event.url, check, binding)
    if not any(same_base(one, found, binding) for one in wanted):
        return False
    _written_headers(event)
    referer = (check.expected.headers or {}).get("referer")
    came_from = event.headers.get("referer")
    if not referer or not came_from:
        return True
    page = address(came_from.lower(), check, binding)
    pages = (referer,) if isinstance(referer, str) else referer
    return any(
        same_base(address(one, check, binding, expected=True), page, binding) for one in pages
    )


class _Header(Struct):
    name: str
    value: str


_HEADERS = msgspec.json.Decoder(list[_Header])


def _written_headers(event: Event) -> None:
    """Raise ReleaseError for headers that are no list of names with values."""
    try:
        _HEADERS.decode(event.entry.request.headers)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"headers that cannot be read: {error}") from error


def _failures(check: NetworkCheck, event: Event, binding: Binding) -> Iterator[str]:
    """Yield the parts in which an event differs."""
    expected = check.expected
    found = address(event.url, check, binding)
    if not any(matches(one, found, check, binding) for one in _expected(check, binding)):
        yield "url"
    if event.status != expected.response_status:
        yield "status"
    if event.entry.request.method != expected.http_method:
        yield "method"
    for name, wanted in (expected.headers or {}).items():
        if not _same_header(check, event, name, wanted, binding):
            yield f"headers.{name}"
    if expected.post_data and not _same_body(check, event, binding):
        yield "post_data"
    if expected.response_content and not _same_content(check, event):
        yield "content"
    for name, cookie in (expected.response_cookies or {}).items():
        there = event.listed_cookies.get(name)
        if there is None or not _same("string", cookie, there):
            yield f"cookies.{name}"


def _same(kind: str, expected: Any, found: Any) -> bool:
    wanted = list(expected) if isinstance(expected, tuple) else expected
    match = equal(kind, wanted, found, mode=Mode.RELEASE)
    if not match.equal and match.reason.startswith("the specification's"):
        raise ReleaseError(match.reason)
    return match.equal is True


def _same_header(
    check: NetworkCheck, event: Event, name: str, expected: Any, binding: Binding
) -> bool:
    found = event.headers.get(name.lower())
    if found is None:
        return False
    if name in ("referer", "redirect_url"):
        pages = (expected,) if isinstance(expected, str) else expected
        place = address(found, check, binding)
        return any(
            matches(address(one, check, binding, expected=True), place, check, binding)
            for one in pages
        )
    return _same("string", expected, bind(found, binding) or found)


def _same_body(check: NetworkCheck, event: Event, binding: Binding) -> bool:
    body = document(event.written_post_data, Mode.RELEASE)
    sent: dict[str, Any] = body if isinstance(body, dict) else {}
    patterns = check.ignored_post_data_params_patterns
    kept = {
        key: value
        for key, value in sent.items()
        if not any(searches(pattern, key) for pattern in patterns)
    }
    if not sent:
        return False
    return all(
        _same_field(check, key, expected, _at(key, kept), binding)
        for key, expected in (check.expected.post_data or {}).items()
    )


def _same_field(check: NetworkCheck, key: str, expected: Any, found: Any, binding: Binding) -> bool:
    if expected is None or found is None:
        return expected is None and found is None
    declared = ((check.post_data_schema or {}).get("properties") or {}).get(key) or {}
    kind = kind_of(check.post_data_schema, key)
    if kind not in _UNBOUND:
        found = bound_text(found, binding)
    if declared.get("type") != "array":
        return _same(kind, expected, found)
    wanted = expected if isinstance(expected, list) else [expected]
    left = list(found) if isinstance(found, list | tuple) else [found]
    for one in wanted:
        partner = next((at for at, two in enumerate(left) if _same(kind, one, two)), None)
        if partner is None:
            return False
        del left[partner]
    return not left


def _at(key: str, data: dict[str, Any]) -> Any:
    """Return one value; several for a filter, or where a pattern of names meets several."""
    pattern = key[2:] if key.startswith("$.^") else key
    if is_pattern(pattern):
        values = [value for name, value in data.items() if found_at_start(pattern, name)]
        return values[0] if len(values) == 1 else (values or None)
    if not key.startswith("$"):
        return data.get(key)
    found = find(key, data) or find(key, unpacked(data))
    if not found:
        return None
    return found[0] if len(found) == 1 and not compiled(key).several else found


def _same_content(check: NetworkCheck, event: Event) -> bool:
    data = document(event.written_content, Mode.RELEASE)
    if not isinstance(data, dict):
        return False
    return all(
        type(_at(key, data)) is type(expected) and _at(key, data) == expected
        if isinstance(expected, bool)
        else _at(key, data) == expected
        for key, expected in (check.expected.response_content or {}).items()
    )
