"""Pairing the items of two lists: the most pairs there can be, or position by position.

Equality of values is not transitive (rounding, patterns, alternatives), so taking the first item
that fits can leave another without a partner. The pairing found here is a maximum one: if any
pairing of all items exists, it is found, in any order of the items (augmenting paths, Kuhn 1955).
Duplicates count: every item has one partner at most.

Whether two items are equal may be open (None). Sure pairs go first; what they leave without a
partner is paired over open pairs where that is possible, and the lists' equality is open then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from trajudge.rules.errors import BadSpecification, TooLarge

MAX_ITEMS = 1000

E = TypeVar("E")
A = TypeVar("A")


class Matching(NamedTuple):
    """Positions: ``pairs`` (expected, actual), ``missing`` of expected, ``surplus`` of actual.

    ``open``: not all of the pairs are sure.
    """

    pairs: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    surplus: tuple[int, ...]
    open: bool = False

    @property
    def equal(self) -> bool | None:
        """Every item has its partner; None where that is open."""
        if self.missing or self.surplus:
            return False
        return None if self.open else True


def _matching(
    partners: dict[int, int], expected: int, actual: int, fits: Callable[[int, int], bool | None]
) -> Matching:
    """``partners`` maps positions of actual items to positions of expected ones."""
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


def _remembered(
    expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool | None]
) -> Callable[[int, int], bool | None]:
    """Call ``same`` by positions, asked at most once for two items."""
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
    """Pairs the items position by position. Raises as ``match_unordered`` does."""
    _check_size(expected, actual)
    fits = _remembered(expected, actual, same)
    both = range(min(len(expected), len(actual)))
    partners = {index: index for index in both if fits(index, index) is not False}
    return _matching(partners, len(expected), len(actual), fits)


def match_unordered(
    expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool | None]
) -> Matching:
    """Pairs as many items as any pairing can; ``same`` is asked at most once for two items.

    The result does not depend on which of several partners an item could have: its size is the
    maximum. Nested lists are compared by a ``same`` that matches them in its turn. Raises TooLarge
    for more than 1,000 items found, BadSpecification for more that are expected.
    """
    _check_size(expected, actual)
    fits = _remembered(expected, actual, same)
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
    """Find a partner for one expected item over pairs whose ``fits`` is ``allowed``, re-pairing
    others along the way if need be."""
    reached_by: dict[int, int] = {}
    queue = deque([start])
    while queue:
        wanted = queue.popleft()
        # The same position first: answers in the specification's order take one comparison each.
        order = (wanted, *range(wanted), *range(wanted + 1, actual))
        for found in order:
            if found >= actual or found in reached_by or fits(wanted, found) not in allowed:
                continue
            reached_by[found] = wanted
            if found in partners:
                queue.append(partners[found])
                continue
            _flip(found, start, reached_by, partners)
            return


def _flip(found: int, start: int, reached_by: dict[int, int], partners: dict[int, int]) -> None:
    """Re-pairs along the path that was found, back to the item that it started from."""
    while True:
        wanted = reached_by[found]
        previous = next((at for at, partner in partners.items() if partner == wanted), None)
        partners[found] = wanted
        if wanted == start or previous is None:
            return
        found = previous
