"""Extract the agent's response from its answer, and compare its data with the specification's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from trajudge.rules.files import json_or_text, json_value
from trajudge.rules.limits import InvalidValue, bounded_json
from trajudge.rules.values import KINDS, Mode, equal, normalise
from trajudge.rules.values.compare import Matching, match_ordered, match_unordered
from trajudge.rules.verified.tasks import AnswerCheck, Schema

MAX_ANSWER = 4 * 2**20
_MAX_OBJECTS = 1_000
_MAX_SCANNED = 2 * 2**20
TASK_TYPES = ("retrieve", "mutate", "navigate")

STATUSES = (
    "SUCCESS",
    "ACTION_NOT_ALLOWED_ERROR",
    "PERMISSION_DENIED_ERROR",
    "NOT_FOUND_ERROR",
    "DATA_VALIDATION_ERROR",
    "UNKNOWN_ERROR",
)

ALIASES = {
    "SEARCH_CRITERIA_NO_MATCH_ERROR": "NOT_FOUND_ERROR",
    "RESOURCE_NOT_FOUND_ERROR": "NOT_FOUND_ERROR",
    "NOT_SUPPORTED_BY_PLATFORM_ERROR": "ACTION_NOT_ALLOWED_ERROR",
}

_NAMES = {
    "task_type": ("task_type", "action", "performed_operation"),
    "status": ("status",),
    "retrieved_data": ("retrieved_data", "results"),
    "error_details": ("error_details",),
}


class Failure(StrEnum):
    """Why a response cannot be read."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    NO_OBJECT = "no_object"
    BAD_TASK_TYPE = "bad_task_type"
    BAD_STATUS = "bad_status"


class ParseFailure(Struct, frozen=True):
    """Why there is no response: the class of failure, and one sentence."""

    kind: Failure
    reason: str


class Oversized(Struct, frozen=True):
    """An answer of ``size`` bytes, of which only the first were read."""

    size: int
    head: bytes


class Response(Struct, frozen=True, kw_only=True):
    """A response, with the release's field names."""

    task_type: str
    status: str
    retrieved_data: Any = None
    error_details: str | None = None


def read_response(answer: object) -> Response | ParseFailure:
    """Return the response in an answer: text (JSON, alone, in fences, or in prose), bytes, or an
    object.

    If a text contains several objects, the last valid response counts. Never raises.
    """
    if isinstance(answer, dict):
        return _response(answer)
    if isinstance(answer, bytes) and len(answer) > MAX_ANSWER:
        answer = Oversized(len(answer), b"")
    if isinstance(answer, Oversized):
        return _too_large(answer.size, "bytes")
    if isinstance(answer, bytes):
        answer = answer.decode("utf-8", "replace")
    if answer is None or (isinstance(answer, str) and not answer.strip("\ufeff \t\r\n")):
        return ParseFailure(Failure.EMPTY, "the agent gave no answer")
    if not isinstance(answer, str):
        return ParseFailure(Failure.NO_OBJECT, "the answer is no JSON object")
    if len(answer) > MAX_ANSWER:
        return _too_large(len(answer), "characters")
    return _last(answer)


def _too_large(size: int, unit: str) -> ParseFailure:
    return ParseFailure(
        Failure.TOO_LARGE, f"the answer has {size:,} {unit}, more than the {MAX_ANSWER:,} read"
    )


def _last(text: str) -> Response | ParseFailure:
    """Return the last object in the text that is a response, else the failure of the last
    object."""
    failure = ParseFailure(Failure.NO_OBJECT, "the answer holds no JSON object")
    for found in reversed(list(_objects(text))):
        response = _response(found)
        if isinstance(response, Response):
            return response
        if failure.kind is Failure.NO_OBJECT and _looks_meant(found):
            failure = response
    return failure


def _looks_meant(record: dict[str, Any]) -> bool:
    return any(name in record for names in _NAMES.values() for name in names)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects in a text, in order, in time linear in its length."""
    for span in _spans(text):
        try:
            value = json_value(span)
            bounded_json(value)
        except (ValueError, InvalidValue, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _spans(text: str) -> list[str]:
    """Return the outermost texts in balanced braces.

    A brace that is never closed is prose. After a quotation mark that is never closed, the search
    restarts at the next brace, within a budget.
    """
    results: list[_Span] = []
    start, doubts = text.find("{"), 0
    while start >= 0 and len(results) < _MAX_OBJECTS and doubts * len(text) <= _MAX_SCANNED:
        closed, start, doubtful = _closed(text, start)
        results += closed
        doubts += doubtful
    spans: list[_Span] = []
    for span in sorted(results, key=lambda span: (span.start, -span.end)):
        if not spans or span.end > spans[-1].end:
            spans.append(span)
    return [text[span.start : span.end] for span in spans[:_MAX_OBJECTS]]


class _Span(NamedTuple):
    start: int
    end: int


_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}]|"', re.DOTALL)


def _closed(text: str, start: int) -> tuple[list[_Span], int, bool]:
    """Read from a brace to the matching one, or to the end.

    Returns the outermost balanced texts up to there, the position at which to search again (-1:
    none), and whether a quotation mark was never closed.
    """
    opened: list[int] = []
    closed: list[_Span] = []
    for mark in _MARKS.finditer(text, start):
        if mark[0] == "{":
            opened.append(mark.start())
        elif mark[0] == "}":
            first = opened.pop()
            while closed and closed[-1].start > first:
                closed.pop()
            closed.append(_Span(first, mark.end()))
            if not opened:
                return closed, text.find("{", mark.end()), False
        elif mark[0] == '"':
            return closed, text.find("{", opened[-1] + 1), True
    return closed, -1, False


def _value(record: dict[str, Any], field: str) -> Any:
    return next((record[name] for name in _NAMES[field] if name in record), None)


def _word(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _response(record: dict[str, Any]) -> Response | ParseFailure:
    task_type = _word(_value(record, "task_type")).lower()
    if task_type not in TASK_TYPES:
        given = repr(_value(record, "task_type"))[:60]
        reason = f"task_type is {given}, not one of {', '.join(TASK_TYPES)}"
        return ParseFailure(Failure.BAD_TASK_TYPE, reason)
    written = _word(_value(record, "status"))
    status = ALIASES.get(written.upper(), written.upper())
    if status not in STATUSES:
        given = repr(_value(record, "status"))[:60]
        return ParseFailure(
            Failure.BAD_STATUS, f"status is {given}, not one of {', '.join(STATUSES)}"
        )
    data = _value(record, "retrieved_data")
    details = _value(record, "error_details")
    return Response(
        task_type=task_type,
        status=status,
        retrieved_data=data,
        error_details=details if isinstance(details, str) else None,
    )


_BLANK: tuple[Any, ...] = (None, "", [], {})


class AnswerDiffers(Exception):
    """The difference between two structures: ``path``, and a message of one clause.

    ``sure`` is False if an error of the specification makes it undecided.
    """

    def __init__(self, path: str, reason: str, *, sure: bool = True) -> None:
        super().__init__(reason)
        self.path = path
        self.sure = sure


def kind_of(schema: Schema) -> str:
    """Return the kind of one value: its ``format``, else its ``type``."""
    name = str(schema.get("format") or schema.get("type") or "string")
    return name if name in KINDS else "string"


def same_data(check: AnswerCheck, expected: Any, actual: Any) -> AnswerDiffers | None:
    """Return None if the data equal the specification's, else the first difference, preferably a
    certain one.

    A list of one scalar equals the scalar. Raises InvalidValue for data beyond the limits,
    Undecided for a specification beyond them.
    """
    if expected in _BLANK and actual in _BLANK:
        return None
    if expected in _BLANK or actual in _BLANK:
        side = "nothing was to be retrieved" if expected in _BLANK else "nothing was retrieved"
        return AnswerDiffers("", side)
    bounded_json(actual)
    try:
        _compare(_array(check.results_schema), expected, actual, "", ordered=check.ordered)
    except AnswerDiffers as difference:
        return difference
    return None


def _array(schema: Schema) -> Schema:
    """Return the schema of a list, for a schema of a single value that of a list of such values."""
    return schema if schema.get("type") == "array" else {"type": "array", "items": schema}


def _compare(schema: Schema, expected: Any, actual: Any, path: str, *, ordered: bool) -> None:
    """Raise AnswerDiffers if the values differ."""
    if schema.get("type") == "array":
        _compare_lists(schema.get("items") or {}, expected, actual, path, ordered=ordered)
    elif schema.get("type") == "object" and not schema.get("format"):
        _compare_objects(schema, expected, actual, path)
    else:
        match = equal(kind_of(schema), expected, actual)
        if match.equal is not True:
            raise AnswerDiffers(path, match.reason, sure=match.equal is False)


def _compare_lists(items: Schema, expected: Any, actual: Any, path: str, *, ordered: bool) -> None:
    wanted = expected if isinstance(expected, list) else [expected]
    given = actual if isinstance(actual, list) else [actual]
    if kind_of(items) == "coordinates" and _is_point(given):
        given = [given]

    left_open: list[AnswerDiffers] = []

    def same(one: Any, other: Any) -> bool | None:
        try:
            _compare(items, one, other, path, ordered=ordered)
        except AnswerDiffers as difference:
            if difference.sure:
                return False
            left_open.append(difference)
            return None
        return True

    how = match_ordered if ordered else match_unordered
    matching = how(wanted, given, same)
    if matching.equal is None:
        raise left_open[0]
    if matching.equal is False:
        _explain(items, wanted, given, matching, path)


def _is_point(value: list[Any]) -> bool:
    return len(value) == 2 and all(type(part) in (int, float) for part in value)


def _explain(
    items: Schema, expected: list[Any], given: list[Any], matching: Matching, path: str
) -> None:
    """Raise AnswerDiffers for two lists: for the two unmatched items if there is one on each
    side."""
    if len(matching.missing) == len(matching.surplus) == 1:
        one, other = matching.missing[0], matching.surplus[0]
        try:
            _compare(items, expected[one], given[other], f"{path}[{other}]", ordered=False)
        except AnswerDiffers as difference:
            if difference.sure:
                raise
    parts = []
    if matching.missing:
        parts.append(f"{len(matching.missing)} of {len(expected)} expected items are missing")
    if matching.surplus:
        parts.append(f"{len(matching.surplus)} of {len(given)} items were not expected")
    raise AnswerDiffers(path, " and ".join(parts) or "the items are not in order")


def _compare_objects(schema: Schema, expected: Any, actual: Any, path: str) -> None:
    actual = _opened(actual)
    if not isinstance(actual, dict):
        raise AnswerDiffers(path, "no object")
    alternatives = expected if isinstance(expected, list) else [expected]
    if not alternatives:
        raise AnswerDiffers(path, "the specification gives no object", sure=False)
    differences = []
    for wanted in alternatives:
        try:
            return _compare_fields(schema, wanted, actual, path)
        except AnswerDiffers as error:
            differences.append(error)
    raise next((error for error in differences if not error.sure), differences[-1])


def _opened(value: Any) -> Any:
    """Parse an object that is given as JSON text."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    return json_or_text(value)


def _compare_fields(schema: Schema, expected: Any, actual: dict[str, Any], path: str) -> None:
    if not isinstance(expected, dict):
        raise AnswerDiffers(path, "the specification gives no object", sure=False)
    named = {str(key).strip().casefold(): value for key, value in actual.items()}
    wanted = {str(key).strip().casefold(): (key, value) for key, value in expected.items()}
    if named.keys() != wanted.keys() or len(named) != len(actual):
        missing = ", ".join(sorted(wanted.keys() - named.keys())) or "none"
        surplus = ", ".join(sorted(named.keys() - wanted.keys()))[:200] or "none"
        raise AnswerDiffers(path, f"keys missing: {missing}; keys not expected: {surplus}")
    properties = schema.get("properties") or {}
    left_open = None
    for name, (key, value) in wanted.items():
        try:
            _compare(properties.get(key) or {}, value, named[name], f"{path}.{key}", ordered=False)
        except AnswerDiffers as difference:
            if difference.sure:
                raise
            left_open = left_open or difference
    if left_open is not None:
        raise left_open


def normal_data(schema: Schema, data: Any, mode: Mode, *, alternatives: bool = False) -> Any:
    """Return the data in normal form for display; invalid values are unchanged.

    With ``alternatives`` a list for a schema of a single value is shown as alternatives.
    """
    if data in _BLANK:
        return None
    schema = _array(schema)
    items = schema.get("items") or {}
    given = data if isinstance(data, list) else [data]
    return [_normal(items, item, mode, alternatives=alternatives) for item in given]


def _normal(schema: Schema, value: Any, mode: Mode, *, alternatives: bool) -> Any:
    if schema.get("type") == "array":
        return normal_data(schema, value, mode, alternatives=alternatives)
    if schema.get("type") == "object" and not schema.get("format"):
        value = _opened(value)
        if not isinstance(value, dict):
            return value
        known = schema.get("properties") or {}
        return {
            key: _normal(known.get(key) or {}, item, mode, alternatives=alternatives)
            for key, item in value.items()
        }
    try:
        return normalise(kind_of(schema), value, mode=mode)
    except InvalidValue:
        if alternatives and isinstance(value, list):
            return [_normal(schema, item, mode, alternatives=False) for item in value]
        return value


def map_texts(change: Callable[[str], Any], data: Any) -> Any:
    """Return data with a function applied to every text except keys."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, list):
        return [map_texts(change, item) for item in data]
    if isinstance(data, dict):
        return {key: map_texts(change, value) for key, value in data.items()}
    return data
