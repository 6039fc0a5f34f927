"""The agent's retrieved data against the specification's, item by item, in the sound mode.

Lists are matched optimally, in order only where the specification says so; objects need the same
keys; a value is read as its schema's kind. Only the specification may hold alternatives.
"""

from __future__ import annotations

from typing import Any

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import bounded_json
from trajudge.rules.reading import json_or_text
from trajudge.rules.values import KINDS, Mode, equal, normalise
from trajudge.rules.values.matching import Matching, match_ordered, match_unordered
from trajudge.rules.verified.dataset import AnswerCheck, Schema
from trajudge.rules.verified.network.sites import Binding

_BLANK: tuple[Any, ...] = (None, "", [], {})


class AnswerDiffers(Exception):
    """Why two structures differ; the message is one clause, ``place`` where it lies.

    ``sure``: they do differ; else the specification is such that it cannot be told.
    """

    def __init__(self, place: str, reason: str, *, sure: bool = True) -> None:
        super().__init__(reason)
        self.place = place
        self.sure = sure


def kind_of(schema: Schema) -> str:
    """Return the kind of one value: its ``format``, else its ``type``."""
    name = str(schema.get("format") or schema.get("type") or "string")
    return name if name in KINDS else "string"


def same_data(check: AnswerCheck, expected: Any, found: Any) -> AnswerDiffers | None:
    """None if the data are the specification's, else the first difference, a sure one if any is.

    A list of one scalar and the scalar are the same answer. Raises InvalidValue for data beyond
    the limits, Undecided for a specification beyond them.
    """
    if expected in _BLANK and found in _BLANK:
        return None
    if expected in _BLANK or found in _BLANK:
        side = "nothing was to be retrieved" if expected in _BLANK else "nothing was retrieved"
        return AnswerDiffers("", side)
    bounded_json(found)
    try:
        _compare(_array(check.results_schema), expected, found, "", ordered=check.ordered)
    except AnswerDiffers as difference:
        return difference
    return None


def _array(schema: Schema) -> Schema:
    """Answers are lists; a schema of one value is that of a list's items."""
    return schema if schema.get("type") == "array" else {"type": "array", "items": schema}


def _compare(schema: Schema, expected: Any, found: Any, place: str, *, ordered: bool) -> None:
    """Raise AnswerDiffers if they differ."""
    if schema.get("type") == "array":
        _compare_lists(schema.get("items") or {}, expected, found, place, ordered=ordered)
    elif schema.get("type") == "object" and not schema.get("format"):
        _compare_objects(schema, expected, found, place)
    else:
        match = equal(kind_of(schema), expected, found)
        if match.equal is not True:
            raise AnswerDiffers(place, match.reason, sure=match.equal is False)


def _compare_lists(items: Schema, expected: Any, found: Any, place: str, *, ordered: bool) -> None:
    wanted = expected if isinstance(expected, list) else [expected]
    given = found if isinstance(found, list) else [found]
    if kind_of(items) == "coordinates" and _is_point(given):
        given = [given]

    left_open: list[AnswerDiffers] = []

    def same(one: Any, other: Any) -> bool | None:
        try:
            _compare(items, one, other, place, ordered=ordered)
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
        _explain(items, wanted, given, matching, place)


def _is_point(value: list[Any]) -> bool:
    return len(value) == 2 and all(type(part) in (int, float) for part in value)


def _explain(
    items: Schema, wanted: list[Any], given: list[Any], matching: Matching, place: str
) -> None:
    """Raise the AnswerDiffers between lists: between the two items that have no partner, if so."""
    if len(matching.missing) == len(matching.surplus) == 1:
        one, other = matching.missing[0], matching.surplus[0]
        try:
            _compare(items, wanted[one], given[other], f"{place}[{other}]", ordered=False)
        except AnswerDiffers as difference:
            if difference.sure:
                raise
    parts = []
    if matching.missing:
        parts.append(f"{len(matching.missing)} of {len(wanted)} expected items are missing")
    if matching.surplus:
        parts.append(f"{len(matching.surplus)} of {len(given)} items were not expected")
    raise AnswerDiffers(place, " and ".join(parts) or "the items are not in order")


def _compare_objects(schema: Schema, expected: Any, found: Any, place: str) -> None:
    found = _opened(found)
    if not isinstance(found, dict):
        raise AnswerDiffers(place, "no object")
    alternatives = expected if isinstance(expected, list) else [expected]
    if not alternatives:
        raise AnswerDiffers(place, "the specification gives no object", sure=False)
    differences = []
    for wanted in alternatives:
        try:
            return _compare_fields(schema, wanted, found, place)
        except AnswerDiffers as error:
            differences.append(error)
    raise next((error for error in differences if not error.sure), differences[-1])


def _opened(value: Any) -> Any:
    """Return an object that was given as JSON text."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    return json_or_text(value)


def _compare_fields(schema: Schema, expected: Any, found: dict[str, Any], place: str) -> None:
    if not isinstance(expected, dict):
        raise AnswerDiffers(place, "the specification gives no object", sure=False)
    named = {str(key).strip().casefold(): value for key, value in found.items()}
    wanted = {str(key).strip().casefold(): (key, value) for key, value in expected.items()}
    if named.keys() != wanted.keys() or len(named) != len(found):
        missing = ", ".join(sorted(wanted.keys() - named.keys())) or "none"
        surplus = ", ".join(sorted(named.keys() - wanted.keys()))[:200] or "none"
        raise AnswerDiffers(place, f"keys missing: {missing}; keys not expected: {surplus}")
    properties = schema.get("properties") or {}
    left_open = None
    for name, (key, value) in wanted.items():
        try:
            _compare(properties.get(key) or {}, value, named[name], f"{place}.{key}", ordered=False)
        except AnswerDiffers as difference:
            if difference.sure:
                raise
            left_open = left_open or difference
    if left_open is not None:
        raise left_open


def normal_data(schema: Schema, data: Any, mode: Mode, *, alternatives: bool = False) -> Any:
    """Return the data in normal form, invalid values as they are; for people to read.

    With ``alternatives`` a list where the schema has one value is shown as such.
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


def bound_data(binding: Binding | None, data: Any) -> Any:
    """Return the data with every address of a site in its texts under the site's placeholder."""
    if binding is None:
        return data
    if isinstance(data, str):
        return binding.bind_text(data)
    if isinstance(data, list):
        return [bound_data(binding, item) for item in data]
    if isinstance(data, dict):
        return {key: bound_data(binding, value) for key, value in data.items()}
    return data
