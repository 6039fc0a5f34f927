"""The semantics of the package ``webarena-verified`` 1.2.3, for comparison with published results.

Written from the package's observed behaviour, defects included: patterns and lists of alternatives
count whoever wrote them, quantities are evaluated, tolerances are fixed. Where the package would
not come back, this does, with InvalidValue. Sites' placeholders are the evaluator's matter.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import bounded_json
from trajudge.rules.values.model import Kind, Match
from trajudge.rules.values.release import distance, documents, numbers, places, points, text, times

if TYPE_CHECKING:
    from pydantic import JsonValue

KINDS: dict[str, Kind[Any]] = {
    "base64": Kind(documents.base64_text, str, documents.same_base64),
    "boolean": Kind(numbers.boolean, lambda value: value),
    "coordinates": Kind(points.coordinates, list, points.same_point, is_list=points.is_point),
    "currency": Kind(numbers.currency, float, numbers.same_price),
    "date": Kind(times.date, str),
    "distance": Kind(distance.parse, lambda value: f"{value} m", distance.same),
    "duration": Kind(times.duration, lambda value: f"{value} s", times.same_duration),
    "full_address": Kind(places.full_address, dict),
    "integer": Kind(numbers.number, lambda value: value),
    "json": Kind(documents.json_text, str),
    "location-name": Kind(text.parse_name, str, text.same_name),
    "markdown": Kind(documents.markdown, str),
    "month": Kind(times.month, str),
    "null": Kind(documents.null, lambda _: None),
    "number": Kind(numbers.number, lambda value: value),
    "string": Kind(text.parse, str, text.same),
    "string_list": Kind(documents.string_list, list),
    "url": Kind(places.url, lambda value: value.shown, places.same_url),
}

_FIRST_ONLY = frozenset({"currency", "coordinates", "full_address"})
"""Kinds of which only the first alternative is compared."""


def _read(name: str, raw: JsonValue) -> list[Any]:
    """Return the alternatives that a value holds: the items of a list of at least two, else
    itself."""
    kind = KINDS.get(name)
    if kind is None:
        raise InvalidValue(f"no kind of value is called {name[:60]!r}")
    if isinstance(raw, list | dict):
        bounded_json(raw)
    if not isinstance(raw, list) or kind.is_list(raw):
        return [kind.parse(raw)]
    if len(raw) < 2:
        raise InvalidValue("a list of fewer than two alternatives")
    return [kind.parse(item) for item in raw]


def _shown(name: str, values: list[Any]) -> JsonValue:
    forms = [KINDS[name].show(value) for value in values]
    return forms[0] if len(forms) == 1 else forms


def normalise(name: str, raw: JsonValue) -> JsonValue:
    """Return the normal form, or the list of the alternatives' normal forms. Raises
    InvalidValue."""
    return _shown(name, _read(name, raw))


def equal(name: str, expected: JsonValue, actual: JsonValue) -> Match:
    """Tell whether any alternative of one side equals any of the other; never raises."""
    wanted = found = None
    try:
        wanted = _read(name, expected)
        found = _read(name, actual)
        count = 1 if name in _FIRST_ONLY else None
        pairs = product(wanted[:count], found[:count])
        alike = any(KINDS[name].same(one, other) for one, other in pairs)
    except InvalidValue as error:
        side = f"the specification's {name} is invalid" if wanted is None else f"{name} is invalid"
        return Match(False, wanted and _shown(name, wanted), found and _shown(name, found),
                     f"{side}: {error}")  # fmt: skip
    reason = "" if alike else f"a different {name}"
    return Match(alike, _shown(name, wanted), _shown(name, found), reason)
