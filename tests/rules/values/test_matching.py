"""Lists are paired by the most pairs there can be, whatever their order."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.limits import BadSpecification, TooLarge
from trajudge.rules.values import equal
from trajudge.rules.values.compare import MAX_ITEMS, Matching, match_ordered, match_unordered


def close(one: float, other: float) -> bool:
    return abs(one - other) <= 1


def test_the_first_that_fits_is_not_always_the_right_partner() -> None:
    # 2 takes 1 if asked first, and leaves 1 without a partner.
    assert match_unordered([2, 1], [1, 3], close).equal
    assert match_unordered([1, 2, 3, 4], [4, 5, 2, 3], close).equal


def test_every_item_has_one_partner_at_most() -> None:
    same = str.__eq__
    assert match_unordered(["a", "a", "b"], ["b", "a", "a"], same).equal
    short = match_unordered(["a", "a"], ["a"], same)
    assert not short.equal
    assert short == Matching(((0, 0),), (1,), ())
    assert match_unordered(["a"], ["a", "a"], same).surplus == (1,)
    assert match_unordered(["a", "b"], ["a", "a"], same) == Matching(((0, 0),), (1,), (1,))


def test_empty_lists_are_equal() -> None:
    assert match_unordered([], [], close).equal
    assert match_ordered([], [], close).equal
    assert match_unordered([], [1.0], close).surplus == (0,)


def test_an_ordered_list_is_paired_by_position() -> None:
    assert match_ordered([1, 5], [1, 6], close).equal
    assert match_ordered([1, 5], [5, 1], close) == Matching((), (0, 1), (0, 1))
    assert match_ordered([1, 5], [1], close) == Matching(((0, 0),), (1,), ())


def test_items_may_be_alternatives_and_lists() -> None:
    def same(one: list[str], other: str) -> bool | None:
        return equal("string", list(one), other).equal

    assert match_unordered([["a", "b"], ["a"]], ["a", "b"], same).equal

    def nested(one: list[int], other: list[int]) -> bool | None:
        return match_unordered(one, other, int.__eq__).equal

    assert match_unordered([[1, 2], [3]], [[3], [2, 1]], nested).equal
    assert not match_unordered([[1, 2], [3]], [[3], [2, 2]], nested).equal


def test_lists_are_bounded() -> None:
    many = list(range(MAX_ITEMS + 1))
    for match in (match_unordered, match_ordered):
        with pytest.raises(TooLarge, match="1,001 items"):
            match([1], many, close)
        with pytest.raises(BadSpecification, match="1,001 items"):
            match(many, [1], close)


def test_long_lists_in_reverse_order_are_paired() -> None:
    items = list(range(300))
    assert match_unordered(items, items[::-1], int.__eq__).equal
    assert match_unordered([0] * 300, [0] * 300, int.__eq__).equal


TRUTHS: dict[tuple[str, str], bool | None] = {("a", "x"): True, ("a", "y"): None, ("b", "x"): None}


def told(one: str, other: str) -> bool | None:
    return TRUTHS.get((one, other), False)


def test_what_is_open_between_items_is_open_between_lists() -> None:
    assert match_unordered(["a"], ["x"], told).equal is True
    assert match_unordered(["a"], ["y"], told).equal is None
    # Only over two open pairs has each of them a partner.
    open_pairs = match_unordered(["a", "b"], ["x", "y"], told)
    assert (open_pairs.pairs, open_pairs.equal) == (((0, 1), (1, 0)), None)
    assert match_unordered(["a", "b"], ["y"], told).equal is False
    assert match_unordered(["b", "b"], ["x", "y"], told).equal is False
    assert match_ordered(["a", "b"], ["y", "x"], told).equal is None
    assert match_ordered(["a", "b"], ["x", "y"], told).equal is False


THREE = st.sampled_from([True, None, False])
OPEN_GRAPHS = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(THREE, min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(edges=OPEN_GRAPHS)
def test_lists_are_equal_if_they_are_however_open_pairs_turn_out(
    edges: list[list[bool | None]],
) -> None:
    rows = range(len(edges))

    def any_pairing(allowed: tuple[bool | None, ...]) -> bool:
        every = itertools.permutations(rows)
        return any(all(edges[row][p[row]] in allowed for row in rows) for p in every)

    found = match_unordered(rows, rows, lambda one, other: edges[one][other]).equal
    assert (found is True) is any_pairing((True,))
    assert (found is not False) is any_pairing((True, None))


GRAPHS = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=5)
)


@given(edges=GRAPHS)
def test_no_pairing_has_more_pairs(edges: list[list[bool]]) -> None:
    rows, columns = range(len(edges)), range(len(edges[0]))
    asked: list[tuple[int, int]] = []

    def fits(one: int, other: int) -> bool:
        asked.append((one, other))
        return edges[one][other]

    found = match_unordered(rows, columns, fits)
    padded = [*columns, *([None] * len(edges))]
    best = max(
        sum(column is not None and edges[row][column] for row, column in zip(rows, p, strict=False))
        for p in itertools.permutations(padded, len(edges))
    )
    assert len(found.pairs) == best
    assert all(edges[one][other] for one, other in found.pairs)
    assert len({other for _, other in found.pairs}) == len(found.pairs)
    assert sorted([*(one for one, _ in found.pairs), *found.missing]) == list(rows)
    assert sorted([*(other for _, other in found.pairs), *found.surplus]) == list(columns)
    assert len(asked) == len(set(asked))
