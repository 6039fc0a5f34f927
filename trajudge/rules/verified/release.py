"""WebArena Verified as the released package 1.2.3 evaluates it, for comparison."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import UNSET, Struct

from trajudge.rules.limits import InvalidValue, bounded_json, is_pattern
from trajudge.rules.values import Mode, equal, normalise
from trajudge.rules.values.release import (
    base_and_query,
    is_ssh,
    normal_address,
    parameters,
    repository,
)
from trajudge.rules.verdict import Assertion, Outcome, checked, shown
from trajudge.rules.verified.answers import MAX_ANSWER, Oversized, map_texts, normal_data
from trajudge.rules.verified.answers import kind_of as kind_of_answer
from trajudge.rules.verified.network import (
    FOLDERS,
    Binding,
    Event,
    Hosts,
    Trace,
    document,
    find,
    ignored,
    json_path,
    kind_of,
    matches_start,
    searches,
    unpacked,
)
from trajudge.rules.verified.tasks import AnswerCheck, NetworkCheck, Schema, Task, placeholder

ERROR = "error"
"""The name of the assertion that stands for what the package calls an error."""


class ReleaseError(Exception):
    """The package raises: the task has status error, whatever the other checks."""


def or_error(made: Callable[[], list[Assertion]]) -> list[Assertion]:
    """Return the assertions of one part of a task, or one named ``error`` where the package
    raises."""
    try:
        return made()
    except (ReleaseError, InvalidValue) as error:
        reason = f"the released package ends with an error: {error}"
        return [Assertion(name=ERROR, outcome=Outcome.FAIL, reason=reason)]


_BASE64 = re.compile(r"[A-Za-z0-9_-]{4,}={0,2}")


class Address(NamedTuple):
    """An address: the base with the site's placeholder; the query's values, lower case, sorted."""

    base: str
    query: Mapping[str, tuple[Any, ...]]


def binding_of(task: Task, trace: Trace, hosts: Hosts) -> Binding:
    """Return the configured addresses of the task's sites, as written.

    Unless all sites are configured, each takes the origin of the event at its own position.
    """
    names = [placeholder(site) for site in task.sites]
    if not all(hosts.get(name) for name in names):
        hosts = _hosts_of(names, trace)
    longest = sorted(names, key=lambda name: -max(map(len, hosts[name])))
    return Binding(tuple((base, name) for name in longest for base in hosts[name]))


def _hosts_of(names: list[str], trace: Trace) -> dict[str, tuple[str, ...]]:
    events = trace.filed
    if not events:
        raise ReleaseError("no event of the trace counts")
    hosts: dict[str, tuple[str, ...]] = {}
    for index, name in enumerate(names):
        try:
            parts = urlsplit(events[min(index, len(events) - 1)].url)
        except ValueError as error:
            raise ReleaseError("an event's address cannot be read") from error
        hosts[name] = (f"{parts.scheme}://{parts.netloc}{FOLDERS.get(name, '')}",)
    return hosts


def bind(text: str, binding: Binding) -> str | None:
    """Replace the addresses of the first matching site in a text by its placeholder; None if no
    site matches."""
    for base, name in binding.bases:
        if base in text:
            return text.replace(base.rstrip("/"), name)
    return None


def bound_text(value: Any, binding: Binding) -> Any:
    """Return a text in the form that the package compares: a pattern unchanged."""
    if not isinstance(value, str) or "http" not in value or is_pattern(value):
        return value
    return bind(value, binding) or value


def render(text: str, binding: Binding) -> str:
    """Replace a site's placeholder at the start of a text by the site's first address."""
    for address, name in binding.bases:
        if text.startswith(name):
            return text.replace(name, address)
    return text


def address(
    url: str,
    check: NetworkCheck,
    binding: Binding,
    query: Mapping[str, Any] | None = None,
    *,
    expected: bool = False,
) -> Address:
    """Return the address in the package's normal form.

    Raises ReleaseError for one that cannot be parsed, and for an ``expected`` one that belongs to
    no site.
    """
    url = url.strip()
    if not url:
        raise ReleaseError("an empty address")
    if is_pattern(url):
        return Address(url, _query(query or {}, check))
    url = url.rstrip("/")
    if url.startswith("__"):
        url = _placed(render(url, binding), url, expected)
    if is_ssh(url):
        return Address(repository(url), {})
    text = normal_address(url)
    base, own = base_and_query(bind(text, binding) or _placed(text, text, expected))
    if query is None:
        parts = [own] if own else []
        if check.decode_base64_query:
            base, packed = _unpacked(base)
            parts = packed + parts
        query = parameters("&".join(parts))
    return Address(base, _query(query, check))


def _placed(made: str, text: str, expected: bool) -> str:
    """Return the bound address; an expected one must have changed."""
    if expected and made == text:
        raise ReleaseError(f"the specification's address {text[:100]!r} is on no site of the task")
    return made


def _unpacked(base: str) -> tuple[str, list[str]]:
    """Return the path without the segments that are a query in base64, and these queries."""
    plain, mark, fragment = base.partition("#")
    head, slashes, rest = plain.partition("://")
    start = f"{head}{slashes}" if slashes else ""
    kept, found = [], []
    for segment in (rest if slashes else plain).split("/"):
        query = _decoded(segment)
        if query is None:
            kept.append(segment)
        else:
            found.append(query)
    slash = "/" if plain.endswith("/") else ""
    return start + "/".join(filter(None, kept)) + slash + mark + fragment, found


def _decoded(segment: str) -> str | None:
    if not _BASE64.fullmatch(segment):
        return None
    try:
        text = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    query = unquote(text).strip()
    return query.lstrip("?&") if "=" in text and query else None


def _query(query: Mapping[str, Any], check: NetworkCheck) -> dict[str, tuple[Any, ...]]:
    kept = {}
    for name, values in query.items():
        listed = (values,) if isinstance(values, str) else tuple(values)
        if not ignored(name, check):
            lowered = (
                value.lower().strip() if isinstance(value, str) else value for value in listed
            )
            kept[name] = tuple(sorted(lowered, key=str))
    return kept


def same_base(expected: Address, actual: Address, binding: Binding) -> bool:
    """Compare ignoring case; either side may be a pattern from the start, with the sites'
    addresses in it."""
    if not is_pattern(expected.base) and not is_pattern(actual.base):
        return expected.base.lower().rstrip("/") == actual.base.lower().rstrip("/")
    return _fits(expected.base, actual.base, binding) or _fits(actual.base, expected.base, binding)


def _fits(pattern: str, base: str, binding: Binding) -> bool:
    if not is_pattern(pattern):
        return False
    return matches_start(f"^{render(pattern[1:-1], binding)}$", render(base, binding))


def same_query(expected: Address, actual: Address, check: NetworkCheck) -> bool:
    """Compare the first value of every parameter of either side; a missing one is empty."""
    for name in expected.query.keys() | actual.query.keys():
        wanted = next(iter(expected.query.get(name, ())), "") or ""
        found = next(iter(actual.query.get(name, ())), "") or ""
        if is_pattern(wanted):
            if not matches_start(wanted, str(found)):
                return False
        elif wanted != found:
            kind = kind_of(check.query_params_schema, name)
            if (
                not check.query_params_schema
                or not equal(kind, wanted, found, mode=Mode.RELEASE).equal
            ):
                return False
    return True


def matches(expected: Address, actual: Address, check: NetworkCheck, binding: Binding) -> bool:
    """Compare base and query. Raises ReleaseError for an invalid pattern."""
    try:
        return same_base(expected, actual, binding) and same_query(expected, actual, check)
    except InvalidValue as error:
        raise ReleaseError(str(error)) from error


_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)\n?```", re.DOTALL)


def read(answer: object) -> Any:
    """Return the response as the package reads it: the first fence, or the whole text, as JSON."""
    value = answer
    if isinstance(answer, Oversized):
        raise ReleaseError(f"an answer of {answer.size:,} bytes")
    if isinstance(answer, bytes):
        answer = value = answer.decode("utf-8", "replace")
    if isinstance(answer, str):
        if len(answer) > MAX_ANSWER:
            raise ReleaseError(f"an answer of {len(answer):,} characters")
        fence = _FENCE.search(answer)
        value = fence[1].strip() if fence else answer.strip()
        try:
            value = json.loads(value)
            bounded_json(value)
        except (ValueError, RecursionError):
            pass
        except InvalidValue as error:
            raise ReleaseError(str(error)) from error
    return value or None


def answer_assertions(check: AnswerCheck, answer: object, binding: Binding) -> list[Assertion]:
    """Return the comparisons of the response, in the package's order. Raises ReleaseError."""
    if answer is not None and not isinstance(answer, str | bytes | dict | list | Oversized):
        raise ReleaseError("an answer that is no text, object or list")
    response = read(answer)
    if not isinstance(response, dict):
        reason = "the answer is no JSON object"
        return [checked("parse_failure.no_object", False, reason, None, response)]
    made = [
        _word(check, response, "task_type", check.expected.task_type),
        _word(check, response, "status", check.expected.status),
    ]
    if check.expected.retrieved_data is UNSET:
        # The package then compares an object without the key to one with it.
        made.append(checked("answer.retrieved_data", False, "a missing key", None, None))
    elif check.expected.task_type == "retrieve":
        data = response.get("retrieved_data")
        expected = check.expected.retrieved_data
        bound = partial(bound_text, binding=binding)
        made.append(_data(check, map_texts(bound, expected), map_texts(bound, data)))
    return made


def _word(check: AnswerCheck, response: dict[str, Any], field: str, expected: str) -> Assertion:
    name = f"answer.{field}"
    key = "performed_operation" if field == "task_type" and field not in response else field
    if key not in response:
        return checked(name, False, f"no {field}", expected, None)
    value = response[key]
    if not isinstance(value, str):
        raise ReleaseError(f"{field} is no text")
    match = equal("string", expected, value.strip(), mode=Mode.RELEASE)
    held = match.equal and bool(value.strip())
    return checked(name, held, f"{field} is {value[:60]!r}", expected, value)


def _nothing(value: Any) -> bool:
    return not value and not isinstance(value, int | float)


def _data(check: AnswerCheck, expected: Any, actual: Any) -> Assertion:
    name = "answer.retrieved_data"
    schema = check.results_schema
    if schema.get("type") != "array" and not (_nothing(expected) and _nothing(actual)):
        raise ReleaseError("the specification's schema is no array")
    if _nothing(expected) or _nothing(actual):
        held = _nothing(expected) and _nothing(actual)
        return checked(name, held, "data on one side alone", expected, actual)
    items = schema.get("items") or {}
    wanted = expected if isinstance(expected, list) else [expected]
    given = actual if isinstance(actual, list) else [actual]
    held = _same_lists(items, wanted, given, ordered=check.ordered)
    return Assertion(
        name=name,
        outcome=Outcome.PASS if held else Outcome.FAIL,
        reason="" if held else "different data",
        expected=expected,
        found=shown(actual),
        expected_normalised=normal_data(schema, expected, Mode.RELEASE, alternatives=True),
        found_normalised=shown(normal_data(schema, actual, Mode.RELEASE)),
    )


def _same_lists(items: Schema, expected: list[Any], given: list[Any], *, ordered: bool) -> bool:
    """Match greedily: each expected item takes the first equal remaining one."""
    if ordered:
        pairs = zip(expected, given, strict=False)
        return len(expected) == len(given) and all(_same(items, *pair, ordered) for pair in pairs)
    left = list(given)
    for one in expected:
        partner = next((at for at, two in enumerate(left) if _same(items, one, two, ordered)), None)
        if partner is None:
            return False
        del left[partner]
    return not left


def _same(schema: Schema, expected: Any, actual: Any, ordered: bool) -> bool:
    if schema.get("type") == "array":
        if not isinstance(expected, list) or not isinstance(actual, list):
            return False
        return _same_lists(schema.get("items") or {}, expected, actual, ordered=ordered)
    if schema.get("type") == "object" and not schema.get("format"):
        return _same_objects(schema, expected, actual, ordered)
    if expected is None or actual is None:
        return expected is actual
    match = equal(kind_of_answer(schema), expected, actual, mode=Mode.RELEASE)
    if not match.equal and match.reason.startswith("the specification's"):
        raise ReleaseError(match.reason)
    return match.equal is True


def _same_objects(schema: Schema, expected: Any, actual: Any, ordered: bool) -> bool:
    if isinstance(actual, str):
        try:
            actual = json.loads(actual)
        except (ValueError, RecursionError):
            return False
    if not isinstance(expected, dict):
        raise ReleaseError("the specification gives no object")
    if not isinstance(actual, dict) or actual.keys() != expected.keys():
        return False
    properties = schema.get("properties") or {}
    return all(
        _same(properties.get(key) or {}, value, actual[key], ordered)
        for key, value in expected.items()
    )


_UNBOUND = frozenset({"base64", "markdown"})
"""Kinds in whose texts the package leaves the sites' addresses as they are."""


def network_assertions(task: Task, trace: Trace, binding: Binding) -> list[Assertion]:
    """Return one assertion per check, with the name ``error`` where the package raises."""
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
    """Return the assertion of a check. Raises ReleaseError, InvalidValue."""
    events = _candidates(task, check, trace, binding)
    chosen = events[-1:] if check.last_event_only else events
    if any(event.status is None for event in chosen):
        raise ReleaseError("a request without a status")
    _readable(check, binding)
    if check.should_not_exist:
        reason = f"{len(events)} events where none were expected"
        return [_assertion(f"{name}.absence", not events, reason, check, events)]
    if not events:
        return [_assertion(f"{name}.url", False, "no such event", check, events)]
    failures = [next(_failures(check, event, binding), "") for event in chosen]
    held = "" in failures
    label = name if held else f"{name}.{failures[-1]}"
    return [_assertion(label, held, f"the {failures[-1]} differs", check, chosen)]


def _readable(check: NetworkCheck, binding: Binding) -> None:
    """Raise for a specification that the package cannot read, whatever the run."""
    _expected(check, binding)
    schema = check.post_data_schema or {}
    for key, expected in (check.expected.post_data or {}).items():
        if expected is None:
            continue
        declared = (schema.get("properties") or {}).get(key) or {}
        several = declared.get("type") == "array" and isinstance(expected, list)
        for value in expected if several else [expected]:
            normalise(kind_of(schema, key), value, mode=Mode.RELEASE)


def _assertion(
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
        if event.method == method and _request_fits(check, event, wanted, binding)
    ]


def _request_fits(
    check: NetworkCheck, event: Event, expected: list[Address], binding: Binding
) -> bool:
    actual = address(event.url, check, binding)
    if not any(same_base(one, actual, binding) for one in expected):
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


class _Nothing(Struct, forbid_unknown_fields=True):
    """An object without fields, in which the package finds no header, as in an empty text."""


_HEADERS = msgspec.json.Decoder(list[_Header] | _Nothing | Literal[""])


def _written_headers(event: Event) -> None:
    """Raise ReleaseError for headers that are not a list of names with values."""
    try:
        _HEADERS.decode(event.entry.request.headers)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReleaseError(f"headers that cannot be read: {error}") from error


def _failures(check: NetworkCheck, event: Event, binding: Binding) -> Iterator[str]:
    """Yield the parts in which an event differs."""
    expected = check.expected
    actual = address(event.url, check, binding)
    if not any(matches(one, actual, check, binding) for one in _expected(check, binding)):
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
        if there is None or not _same_request("string", cookie, there):
            yield f"cookies.{name}"


def _same_request(kind: str, expected: Any, actual: Any) -> bool:
    wanted = list(expected) if isinstance(expected, tuple) else expected
    match = equal(kind, wanted, actual, mode=Mode.RELEASE)
    if not match.equal and match.reason.startswith("the specification's"):
        raise ReleaseError(match.reason)
    return match.equal is True


def _same_header(
    check: NetworkCheck, event: Event, name: str, expected: Any, binding: Binding
) -> bool:
    actual = event.headers.get(name.lower())
    if actual is None:
        return False
    if name in ("referer", "redirect_url"):
        pages = (expected,) if isinstance(expected, str) else expected
        sent = address(actual, check, binding)
        return any(
            matches(address(one, check, binding, expected=True), sent, check, binding)
            for one in pages
        )
    return _same_request("string", expected, bind(actual, binding) or actual)


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


def _same_field(
    check: NetworkCheck, key: str, expected: Any, actual: Any, binding: Binding
) -> bool:
    if expected is None or actual is None:
        return expected is None and actual is None
    declared = ((check.post_data_schema or {}).get("properties") or {}).get(key) or {}
    kind = kind_of(check.post_data_schema, key)
    if kind not in _UNBOUND:
        actual = bound_text(actual, binding)
    if declared.get("type") != "array":
        return _same_request(kind, expected, actual)
    wanted = expected if isinstance(expected, list) else [expected]
    left = list(actual) if isinstance(actual, list | tuple) else [actual]
    for one in wanted:
        partner = next((at for at, two in enumerate(left) if _same_request(kind, one, two)), None)
        if partner is None:
            return False
        del left[partner]
    return not left


def _at(key: str, data: dict[str, Any]) -> Any:
    """Return one value, or several for a filter or a pattern of names."""
    pattern = key[2:] if key.startswith("$.^") else key
    if is_pattern(pattern):
        values = [value for name, value in data.items() if matches_start(pattern, name)]
        return values[0] if len(values) == 1 else (values or None)
    if not key.startswith("$"):
        return data.get(key)
    found = find(key, data) or find(key, unpacked(data))
    if not found:
        return None
    return found[0] if len(found) == 1 and not json_path(key).several else found


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
