"""One request against one specification, part by part, in the sound mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from trajudge.rules.errors import Undecided
from trajudge.rules.values import equal
from trajudge.rules.values.matching import match_unordered
from trajudge.rules.verdict import Assertion, Outcome, checked, decided, shown
from trajudge.rules.verified.dataset import NetworkCheck
from trajudge.rules.verified.network.addresses import (
    Address,
    Query,
    address,
    differing,
    expected_query,
    kind_of,
    same_base,
)
from trajudge.rules.verified.network.bodies import document, unpacked
from trajudge.rules.verified.network.events import Event
from trajudge.rules.verified.network.jsonpath import compiled, find
from trajudge.rules.verified.network.patterns import (
    fullmatch,
    is_pattern,
    searches,
    with_holes,
)
from trajudge.rules.verified.network.run import Run
from trajudge.rules.verified.network.sites import Binding

# A page that the browser had kept and the server confirmed is the page.
_SAME_STATUS = {200: (200, 304)}
_LIST_FIELD = re.compile(r"\[\d*\]\Z")
_URL_HEADERS = frozenset({"referer", "redirect_url", "location", "origin"})


def compared(run: Run, check: NetworkCheck, event: Event, name: str) -> Iterator[Assertion]:
    """Yield the assertions on one event, named ``NAME.part``; unknown where the specification's own
    mistake hides the answer."""
    place = run.address(event, base64_path=check.decode_base64_query)
    yield from _url(check, event, place, name)
    yield _status(check, event, name)
    expected = check.expected
    for header in expected.headers or {}:
        label = f"{name}.headers.{header.lower()}"
        yield _or_unknown(label, partial(_header, run, check, event, header, label))
    if expected.post_data:
        yield from _post_data(run, check, event, name)
    if expected.response_content:
        yield from _content(check, event, name)
    for cookie, wanted in (expected.response_cookies or {}).items():
        found = event.cookies.get(cookie)
        yield _value(f"{name}.cookies.{cookie}", "string", wanted, found)


def _or_unknown(name: str, make: Callable[[], Assertion]) -> Assertion:
    try:
        return make()
    except Undecided as error:
        return Assertion(name=name, outcome=Outcome.UNKNOWN, reason=str(error))


def _value(name: str, kind: str, expected: Any, found: Any) -> Assertion:
    """Return one value against the specification's, with both normal forms."""
    wanted = list(expected) if isinstance(expected, tuple) else expected
    match = equal(kind, wanted, found)
    return Assertion(
        name=name,
        outcome=decided(match.equal),
        reason=match.reason,
        expected=wanted,
        found=shown(found),
        expected_normalised=match.expected,
        found_normalised=shown(match.actual),
    )


class _Fit(NamedTuple):
    """How an alternative of the address, whose base fits, fares: its query, the parameters that
    differ, and why that cannot be told."""

    query: Query
    differ: list[str]
    mistake: str = ""


def _url(
    check: NetworkCheck, event: Event, place: Address | None, name: str
) -> Iterator[Assertion]:
    """Yield the base address, then the query of the alternative that fits best."""
    urls = check.expected.urls
    fitting, mistakes = [], []
    for url in urls:
        try:
            if place is not None and same_base(url, place):
                fitting.append(url)
        except Undecided as error:
            mistakes.append(str(error))
    if place is None or not fitting:
        reason = next(iter(mistakes), f"{event.url[:200]} is not the address")
        yield checked(f"{name}.url", None if mistakes else False, reason, list(urls), event.url)
        return
    yield checked(f"{name}.url", True, "", fitting[0], event.url)
    best = min((_fit(url, place, check) for url in fitting), key=_badness)
    held = None if best.mistake or (best.differ and mistakes) else not best.differ
    differ = f"the parameters {', '.join(best.differ[:10])} differ"
    yield checked(
        f"{name}.query",
        held,
        best.mistake or next(iter(mistakes), differ),
        {key: list(values) for key, values in best.query.items()},
        {key: list(values) for key, values in place.query.items()} if best.differ else None,
    )


def _fit(url: str, place: Address, check: NetworkCheck) -> _Fit:
    query = expected_query(url, check)
    try:
        return _Fit(query, differing(query, place.query, check))
    except Undecided as error:
        return _Fit(query, [], str(error))


def _badness(fit: _Fit) -> tuple[bool, bool, int]:
    """Return one that holds before one that is open before those that differ."""
    return (bool(fit.differ), bool(fit.mistake), len(fit.differ))


def _status(check: NetworkCheck, event: Event, name: str) -> Assertion:
    wanted = check.expected.response_status
    if event.status is None:
        return Assertion(
            name=f"{name}.status",
            outcome=Outcome.UNKNOWN,
            reason="the trace recorded no response",
            expected=wanted,
        )
    held = event.status in _SAME_STATUS.get(wanted, (wanted,))
    reason = f"the server answered {event.status}, not {wanted}"
    return checked(f"{name}.status", held, reason, wanted, event.status)


def _header(run: Run, check: NetworkCheck, event: Event, header: str, label: str) -> Assertion:
    """Addresses as addresses, anything else as text; a header that was not sent is empty. Raises
    Undecided."""
    expected: Any = (check.expected.headers or {})[header]
    found = event.headers.get(header.lower(), "")
    if header.lower() not in _URL_HEADERS:
        if is_pattern(expected):
            return checked(label, fullmatch(expected, found), "no match", expected, found)
        return _value(label, "string", expected, found)
    wanted = (expected,) if isinstance(expected, str) else tuple(expected)
    place = address(found, run.binding)
    held = any(_same_address(url, place, check) for url in wanted)
    return checked(label, held, f"came from {found[:200]!r}", list(wanted), found)


def _same_address(url: str, place: Address, check: NetworkCheck) -> bool:
    if not same_base(url, place):
        return False
    wanted = {} if is_pattern(url) else address(url, Binding(())).query
    return not differing(wanted, place.query, check)


def _post_data(run: Run, check: NetworkCheck, event: Event, name: str) -> Iterator[Assertion]:
    if not event.post_recorded:
        reason = "the trace recorded no body of the request"
        expected = check.expected.post_data
        yield Assertion(
            name=f"{name}.post_data", outcome=Outcome.UNKNOWN, reason=reason, expected=expected
        )
        return
    sent = document(event.post_data)
    try:
        sent = _without_ignored(sent, check.ignored_post_data_params_patterns)
    except Undecided as error:
        yield Assertion(name=f"{name}.post_data", outcome=Outcome.UNKNOWN, reason=str(error))
        return

    def field(label: str, key: str, expected: Any) -> Assertion:
        values = _at(key, sent)
        if not values and isinstance(expected, list):
            values = _listed(key, sent)
        found = [_bound(run, value) for value in values]
        return _field(label, check.post_data_schema, key, expected, found)

    for key, expected in (check.expected.post_data or {}).items():
        label = f"{name}.post_data.{key}"
        yield _or_unknown(label, partial(field, label, key, expected))


def _without_ignored(sent: Any, patterns: Sequence[str]) -> Any:
    """Raise Undecided."""
    if not isinstance(sent, dict) or not patterns:
        return sent
    return {
        key: value
        for key, value in sent.items()
        if not any(searches(pattern, key) for pattern in patterns)
    }


def _bound(run: Run, value: Any) -> Any:
    return run.binding.bind_text(value) if isinstance(value, str) else value


def _field(label: str, schema: Any, key: str, expected: Any, found: list[Any]) -> Assertion:
    """Return one field of a form: None must be absent, a declared list is a list in any order."""
    if expected is None:
        there = [value for value in found if value not in (None, "")]
        return checked(label, not there, "a field that must be absent", None, there or None)
    if not found:
        return checked(label, False, "the field was not sent", expected, None)
    declared = ((schema or {}).get("properties") or {}).get(key) or {}
    kind = kind_of(schema, key)
    if declared.get("type") == "array" or (isinstance(expected, list) and len(expected) == 1):
        wanted = expected if isinstance(expected, list) else [expected]
        return _list(label, kind, wanted, found)
    if len(found) > 1:
        return checked(label, False, "several fields where one is expected", expected, found)
    if isinstance(expected, str):
        expected = with_holes(expected) or expected
    return _value(label, kind, expected, found[0])


def _list(label: str, kind: str, expected: list[Any], found: list[Any]) -> Assertion:
    """Return a list in any order; a field or place that holds one list is that list."""
    items = found[0] if len(found) == 1 and isinstance(found[0], list) else found
    flat = [part for item in items for part in (item if isinstance(item, list) else [item])]
    held = match_unordered(expected, flat, lambda one, other: equal(kind, one, other).equal).equal
    reason = "a different list" if held is False else "an item of the specification's list is none"
    return checked(label, held, reason, expected, flat)


def _at(key: str, data: Any) -> list[Any]:
    """Return the values of a key: a name, a pattern of names (``$.^...$``, ``^...$``), a
    JSONPath."""
    pattern = key[2:] if key.startswith("$.^") else key
    if not is_pattern(pattern):
        pattern = with_holes(key) or ""
    if pattern:
        if not isinstance(data, dict):
            return []
        return [value for name, value in data.items() if fullmatch(pattern, name)]
    if key.startswith("$"):
        return _followed(key, data)
    return [data[key]] if isinstance(data, dict) and key in data else []


def _listed(key: str, data: Any) -> list[Any]:
    """Return the list that a form spells out in fields ``key[0]``, ``key[1]`` or ``key[]``."""
    if not isinstance(data, dict):
        return []
    spelt = [value for name, value in data.items() if _LIST_FIELD.sub("", name) == key != name]
    flat = [part for value in spelt for part in (value if isinstance(value, list) else [value])]
    return [flat] if flat else []


def _followed(path: str, data: Any) -> list[Any]:
    found = find(path, data) or find(path, unpacked(data))
    if compiled(path).several and any(isinstance(value, list) for value in found):
        return [part for value in found for part in (value if isinstance(value, list) else [value])]
    return found


def _content(check: NetworkCheck, event: Event, name: str) -> Iterator[Assertion]:
    """Yield the reply, where the trace holds it; without it the verdict is unknown."""
    body = event.content
    if body is None or body.text is None:
        yield Assertion(
            name=f"{name}.content",
            outcome=Outcome.UNKNOWN,
            reason="the trace recorded no body of the response",
            expected=check.expected.response_content,
        )
        return
    data = document(body)
    for key, expected in (check.expected.response_content or {}).items():
        label = f"{name}.content.{key}"
        yield _or_unknown(label, partial(_part, label, key, expected, data))


def _part(label: str, key: str, expected: Any, data: Any) -> Assertion:
    """Return one place of the reply. Raises Undecided."""
    found = _at(key, data)
    if not found:
        return checked(label, False, "the reply does not hold it", expected, None)
    return _value(label, _json_kind(expected), expected, found[0])


def _json_kind(expected: Any) -> str:
    """Return the kind of a value that JSON itself types."""
    if isinstance(expected, bool):
        return "boolean"
    return "number" if isinstance(expected, int | float) else "string"
