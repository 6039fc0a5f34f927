"""Pairing the items of two lists: the most pairs there can be, or position by position.

Equality of values is not transitive (rounding, patterns, alternatives), so taking the first item
that fits can leave another without a partner. The pairing found here is a maximum one: if any
pairing of all items exists, it is found, in any order of the items (augmenting paths, Kuhn 1955).
Duplicates count: every item has one partner at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from rules.errors import TooLarge

MAX_ITEMS = 1000

E = TypeVar("E")
A = TypeVar("A")


class Matching(NamedTuple):
    """Positions: ``pairs`` (expected, actual), ``missing`` of expected, ``surplus`` of actual."""

    pairs: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    surplus: tuple[int, ...]

    @property
    def equal(self) -> bool:
        """Every item has its partner."""
        return not self.missing and not self.surplus


def _matching(partners: dict[int, int], expected: int, actual: int) -> Matching:
    """``partners`` maps positions of actual items to positions of expected ones."""
    taken = set(partners.values())
    return Matching(
        pairs=tuple(sorted((wanted, found) for found, wanted in partners.items())),
        missing=tuple(index for index in range(expected) if index not in taken),
        surplus=tuple(index for index in range(actual) if index not in partners),
    )


def _check_size(expected: Sequence[E], actual: Sequence[A]) -> None:
    for items in (expected, actual):
        if len(items) > MAX_ITEMS:
            raise TooLarge(f"a list of {len(items):,} items, more than the {MAX_ITEMS:,} allowed")


def match_ordered(
    expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool]
) -> Matching:
    """Pairs the items position by position. Raises TooLarge beyond 1,000 items."""
    _check_size(expected, actual)
    both = enumerate(zip(expected, actual, strict=False))
    partners = {index: index for index, (wanted, found) in both if same(wanted, found)}
    return _matching(partners, len(expected), len(actual))


def match_unordered(
    expected: Sequence[E], actual: Sequence[A], same: Callable[[E, A], bool]
) -> Matching:
    """Pairs as many items as any pairing can; ``same`` is asked at most once for two items.

    The result does not depend on which of several partners an item could have: its size is the
    maximum. Nested lists are compared by a ``same`` that matches them in its turn. Raises TooLarge
    beyond 1,000 items.
    """
    _check_size(expected, actual)
    known: dict[tuple[int, int], bool] = {}

    def fits(wanted: int, found: int) -> bool:
        key = (wanted, found)
        if key not in known:
            known[key] = same(expected[wanted], actual[found])
        return known[key]

    partners: dict[int, int] = {}
    for wanted in range(len(expected)):
        _augment(wanted, len(actual), partners, fits)
    return _matching(partners, len(expected), len(actual))


def _augment(
    start: int, actual: int, partners: dict[int, int], fits: Callable[[int, int], bool]
) -> None:
    """Finds a partner for one expected item, re-pairing others along the way if need be."""
    reached_by: dict[int, int] = {}
    queue = deque([start])
    while queue:
        wanted = queue.popleft()
        # The same position first: answers in the specification's order take one comparison each.
        order = (wanted, *range(wanted), *range(wanted + 1, actual))
        for found in order:
            if found >= actual or found in reached_by or not fits(wanted, found):
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
