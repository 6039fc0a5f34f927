"""Normal forms and equality of values of any kind, in either mode, and the matching of lists.

Equality of values is not transitive (rounding, patterns, alternatives), so that a greedy matching
may leave an item without a partner although it could have one. The matching is therefore a maximum
one, whatever the order of the items (augmenting paths, Kuhn 1955). Duplicates count: every item has
at most one partner.

The equality of two items may be undecided (None). Certain pairs are matched first; the remaining
items are matched by undecided pairs, and then the equality of the lists is undecided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trajudge.rules.limits import (
    JSON_DEPTH,
    BadSpecification,
    InvalidValue,
    TooLarge,
    Undecided,
    fullmatch,
    is_pattern,
)
from trajudge.rules.values import quantities, release, texts
from trajudge.rules.values.model import Kind, Match, Mode

if TYPE_CHECKING:
    from pydantic import JsonValue


_SOUND: dict[str, Kind[Any]] = {
    "base64": texts.BASE64,
    "boolean": quantities.BOOLEAN,
    "coordinates": quantities.COORDINATES,
    "currency": quantities.CURRENCY,
    "date": quantities.DATE,
    "distance": quantities.DISTANCE,
    "duration": quantities.DURATION,
    "full_address": texts.FULL_ADDRESS,
    "integer": quantities.INTEGER,
    "json": texts.JSON,
    "location-name": texts.LOCATION_NAME,
    "markdown": texts.MARKDOWN,
    "month": quantities.MONTH,
    "null": quantities.NOTHING,
    "number": quantities.NUMBER,
    "string": texts.STRING,
    "string_list": texts.STRING_LIST,
    "url": texts.URL,
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
    """Parse a value of a kind; return None for a text that states no value. Raises InvalidValue."""
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
    """Return the parsed value and no error, or None and the error. Results for short values are
    cached."""
    if not isinstance(raw, list | dict) and (not isinstance(raw, str) or len(raw) <= _CACHED_CHARS):
        return _remembered(name, raw)
    try:
        return _read(name, raw), None
    except InvalidValue as error:
        return None, error


def _shown(kind: Kind[Any], value: Any) -> JsonValue:
    return None if value is None else kind.show(value)


def normalise(kind: str, raw: JsonValue, *, mode: Mode = Mode.SOUND) -> JsonValue:
    """Return the normal form of a value; None for no value (None, blank text).

    Raises only InvalidValue, whatever ``raw`` is. In the release's mode a list of several values is
    a list of alternatives, in an agent's value, too.
    """
    if mode is Mode.RELEASE:
        return release.normalise(kind, raw)
    value, error = _parsed(kind, raw)
    if error is not None:
        raise type(error)(*error.args)
    return _shown(_kind(kind), value)


def equal(kind: str, expected: JsonValue, actual: JsonValue, *, mode: Mode = Mode.SOUND) -> Match:
    """Return whether an agent's value equals the specification's, None if an error of the
    specification prevents the comparison; never raises.

    Only ``expected`` may be a list of alternatives, of which one must be equal, and, for string,
    location-name, base64 and url, a pattern ``^...$`` that must match the whole value (for the
    first two ignoring case). Without alternatives and patterns, equality is symmetric.
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
    """Return the first alternative that is equal, or the normal forms with one reason,
    preferably that of the first alternative that cannot be decided."""
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
    readings_of: Callable[[JsonValue], Sequence[str]],
    pattern: str,
    actual: JsonValue,
) -> Match:
    if actual == pattern:
        return Match(True, pattern, pattern, "")
    matches = partial(fullmatch, pattern, case_matters=kind.case_matters)
    try:
        readings = readings_of(actual)
        alike = any(matches(reading) for reading in dict.fromkeys(readings))
    except Undecided as error:
        return Match(None, pattern, None, str(error))
    except InvalidValue as error:
        return Match(False, pattern, None, str(error))
    return Match(alike, pattern, readings[-1], "" if alike else "the pattern does not match")


MAX_ITEMS = 1000
E = TypeVar("E")
A = TypeVar("A")


class Matching(NamedTuple):
    """Positions of matched items: ``pairs`` (expected, actual), ``missing`` expected and
    ``surplus`` actual items.

    ``open``: some of the pairs are undecided.
    """

    pairs: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    surplus: tuple[int, ...]
    open: bool = False

    @property
    def equal(self) -> bool | None:
        """Whether every item has a partner; None if undecided."""
        if self.missing or self.surplus:
            return False
        return None if self.open else True


def _matching(
    partners: dict[int, int], expected: int, actual: int, fits: Callable[[int, int], bool | None]
) -> Matching:
    """Convert ``partners``, a mapping of actual to expected positions, to a Matching."""
    taken = set(partners.values())
    return Matching(
        pairs=tuple(sorted((wanted, found) for found, wanted in partners.items())),
        missing=tuple(index for index in range(expected) if index not in taken),
        surplus=tuple(index for index in range(actual) if index not in partners),
        open=any(fits(wanted, found) is None for found, wanted in partners.items()),
    )


def _check_size(expected: Sequence[E], actual: Sequence[A]) -> None:
    reason = f"a list of {{:,}} items, more than the {MAX_ITEMS:,} allowed"
    if len(expected) > MAX_ITEMS:
        raise BadSpecification(f"the specification has {reason.format(len(expected))}")
    if len(actual) > MAX_ITEMS:
        raise TooLarge(reason.format(len(actual)))


def _cached(
    expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool | None]
) -> Callable[[int, int], bool | None]:
    """Return ``same`` as a function of positions, with cached results."""
    known: dict[tuple[int, int], bool | None] = {}

    def fits(wanted: int, found: int) -> bool | None:
        key = (wanted, found)
        if key not in known:
            known[key] = same(expected[wanted], actual[found])
        return known[key]

    return fits


def match_ordered(
    expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool | None]
) -> Matching:
    """Match the items position by position. Raises as ``match_unordered`` does."""
    _check_size(expected, actual)
    fits = _cached(expected, actual, same)
    both = range(min(len(expected), len(actual)))
    partners = {index: index for index in both if fits(index, index) is not False}
    return _matching(partners, len(expected), len(actual), fits)


def match_unordered(
    expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool | None]
) -> Matching:
    """Return a maximum matching; ``same`` is called at most once for two items.

    The size of the result does not depend on the order of the items. For nested lists ``same`` must
    itself match lists. Raises TooLarge for more than 1,000 actual items, BadSpecification for more
    than 1,000 expected ones.
    """
    _check_size(expected, actual)
    fits = _cached(expected, actual, same)
    partners: dict[int, int] = {}
    for allowed in ((True,), (True, None)):
        taken = set(partners.values())
        for wanted in range(len(expected)):
            if wanted not in taken:
                _augment(wanted, len(actual), partners, fits, allowed)
    return _matching(partners, len(expected), len(actual), fits)


def _augment(
    start: int,
    actual: int,
    partners: dict[int, int],
    fits: Callable[[int, int], bool | None],
    allowed: tuple[bool | None, ...],
) -> None:
    """Find a partner for one expected item among pairs whose ``fits`` is ``allowed``, along an
    augmenting path."""
    reached_by: dict[int, int] = {}
    queue = deque([start])
    while queue:
        expected = queue.popleft()
        # The same position first: answers in the specification's order need one comparison each.
        order = (expected, *range(expected), *range(expected + 1, actual))
        for found in order:
            if found >= actual or found in reached_by or fits(expected, found) not in allowed:
                continue
            reached_by[found] = expected
            if found in partners:
                queue.append(partners[found])
                continue
            _flip(found, start, reached_by, partners)
            return


def _flip(actual: int, start: int, reached_by: dict[int, int], partners: dict[int, int]) -> None:
    """Exchange the pairs along the augmenting path that ends at ``actual``."""
    while True:
        expected = reached_by[actual]
        previous = next((at for at, partner in partners.items() if partner == expected), None)
        partners[actual] = expected
        if expected == start or previous is None:
            return
        actual = previous
