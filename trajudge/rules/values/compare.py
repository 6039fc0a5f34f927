"""Normal forms and equality of values of any kind, in either mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from trajudge.rules.errors import InvalidValue, TooLarge, Undecided
from trajudge.rules.limits import JSON_DEPTH, fullmatch, is_pattern
from trajudge.rules.values import release
from trajudge.rules.values.model import Kind, Match, Mode
from trajudge.rules.values.quantities import (
    boolean,
    coordinates,
    currency,
    date,
    distance,
    duration,
    month,
    nothing,
    number,
)
from trajudge.rules.values.texts import (
    base64_text,
    full_address,
    json_text,
    location_name,
    markdown,
    string_list,
    text,
    url,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

_SOUND: dict[str, Kind[Any]] = {
    "base64": base64_text.KIND,
    "boolean": boolean.KIND,
    "coordinates": coordinates.KIND,
    "currency": currency.KIND,
    "date": date.KIND,
    "distance": distance.KIND,
    "duration": duration.KIND,
    "full_address": full_address.KIND,
    "integer": number.INTEGER,
    "json": json_text.KIND,
    "location-name": location_name.KIND,
    "markdown": markdown.KIND,
    "month": month.KIND,
    "null": nothing.KIND,
    "number": number.KIND,
    "string": text.KIND,
    "string_list": string_list.KIND,
    "url": url.KIND,
}

KINDS = tuple(_SOUND)
"""The names of the kinds, as a schema's ``format`` or ``type`` gives them."""

MAX_ALTERNATIVES = 1000
_CACHED_CHARS = 200


def _kind(name: str) -> Kind[Any]:
    try:
        return _SOUND[name]
    except KeyError:
        raise InvalidValue(f"no kind of value is called {name[:60]!r}") from None


def _read(name: str, raw: JsonValue) -> Any:
    """Return what a value's kind reads in it; None for nothing. Raises InvalidValue."""
    kind = _kind(name)
    if raw is None and kind.nothing:
        return None
    if isinstance(raw, str) and len(raw) < 10 and raw.strip().casefold() in kind.nothing:
        return None
    try:
        value = kind.parse(raw)
    except RecursionError as error:
        raise TooLarge(f"nested deeper than {JSON_DEPTH} levels") from error
    return None if value == "" and "" in kind.nothing else value


@lru_cache(maxsize=8192, typed=True)
def _remembered(name: str, raw: str | float | None) -> tuple[Any, InvalidValue | None]:
    try:
        return _read(name, raw), None
    except InvalidValue as error:
        return None, error


def _parsed(name: str, raw: JsonValue) -> tuple[Any, InvalidValue | None]:
    """Return what was read and no error, or nothing and the error. Short values are read once."""
    if not isinstance(raw, list | dict) and (not isinstance(raw, str) or len(raw) <= _CACHED_CHARS):
        return _remembered(name, raw)
    try:
        return _read(name, raw), None
    except InvalidValue as error:
        return None, error


def _shown(kind: Kind[Any], value: Any) -> JsonValue:
    return None if value is None else kind.show(value)


def normalise(kind: str, raw: JsonValue, *, mode: Mode = Mode.SOUND) -> JsonValue:
    """Return the normal form of one value; None for nothing (None, blank text).

    Raises InvalidValue, and nothing else whatever ``raw`` is. In the release's mode a list of
    several values is a list of alternatives, whosever value it is.
    """
    if mode is Mode.RELEASE:
        return release.normalise(kind, raw)
    value, error = _parsed(kind, raw)
    if error is not None:
        raise type(error)(*error.args)
    return _shown(_kind(kind), value)


def equal(kind: str, expected: JsonValue, actual: JsonValue, *, mode: Mode = Mode.SOUND) -> Match:
    """Tell whether an agent's value is the specification's, or None if its mistake hides that;
    never raises.

    Only ``expected`` may be a list of alternatives, one of which has to be met, and, for string,
    location-name, base64 and url, a pattern ``^...$`` that has to match the whole value (in any
    case for the first two). Without either, equality is symmetric.
    """
    if mode is Mode.RELEASE:
        return release.equal(kind, expected, actual)
    try:
        how = _kind(kind)
    except InvalidValue as error:
        return Match(None, None, None, str(error))
    if isinstance(expected, list) and not how.is_list(expected):
        return _any_of(kind, expected, actual)
    if is_pattern(expected) and how.texts is not None:
        return _matches(how, how.texts, str(expected), actual)
    return _same(kind, how, expected, actual)


def _same(name: str, kind: Kind[Any], expected: JsonValue, actual: JsonValue) -> Match:
    wanted, mistake = _parsed(name, expected)
    found, error = _parsed(name, actual)
    if mistake is not None:
        return Match(None, None, None, f"the specification's {name} is invalid: {mistake}")
    shown = _shown(kind, wanted)
    if error is not None:
        return Match(False, shown, None, f"not a valid {name}: {error}")
    there = _shown(kind, found)
    nothing = wanted is None or found is None
    alike = wanted is found if nothing else kind.same(wanted, found)
    return Match(alike, shown, there, "" if alike else f"a different {name}")


def _any_of(name: str, expected: list[JsonValue], actual: JsonValue) -> Match:
    """Return the first alternative that is met, or the verdicts' normal forms with one reason: the
    first alternative's that cannot be decided, if there is one."""
    if not expected or len(expected) > MAX_ALTERNATIVES:
        reason = f"the specification gives {len(expected)} alternatives"
        return Match(None, None, None, f"{reason}: 1 to {MAX_ALTERNATIVES} are allowed")
    verdicts = []
    for alternative in expected:
        if isinstance(alternative, list) and not _kind(name).is_list(alternative):
            verdict = Match(None, None, None, "the specification's alternatives are nested")
        else:
            verdict = equal(name, alternative, actual)
        if verdict.equal:
            return verdict
        verdicts.append(verdict)
    forms = [verdict.expected for verdict in verdicts]
    for verdict in verdicts:
        if verdict.equal is None:
            return Match(None, forms, verdict.actual, verdict.reason)
    reason = verdicts[0].reason if len(verdicts) == 1 else "none of the alternatives"
    return Match(False, forms, verdicts[0].actual, reason)


def _matches(
    kind: Kind[Any],
    texts: Callable[[JsonValue], Sequence[str]],
    pattern: str,
    actual: JsonValue,
) -> Match:
    if actual == pattern:
        return Match(True, pattern, pattern, "")
    matches = partial(fullmatch, pattern, case_matters=kind.case_matters)
    try:
        readings = texts(actual)
        alike = any(matches(reading) for reading in dict.fromkeys(readings))
    except Undecided as error:
        return Match(None, pattern, None, str(error))
    except InvalidValue as error:
        return Match(False, pattern, None, str(error))
    return Match(alike, pattern, readings[-1], "" if alike else "the pattern does not match")
