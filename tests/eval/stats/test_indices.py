"""Uniform indices and multinomial counts: every outcome as often as the definition says."""

from __future__ import annotations

from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats.intervals import Multiplicities, uniform_indices


@pytest.mark.parametrize("bound", [1, 2, 58, 257, 19_683])
def test_every_index_is_as_likely(bound: int) -> None:
    from scipy import stats

    drawn = uniform_indices(bound, 400_000, np.random.default_rng(bound))
    found = np.bincount(drawn, minlength=bound)
    assert len(found) == bound
    assert stats.chisquare(found).pvalue > 1e-3 if bound > 1 else found.tolist() == [400_000]


def test_indices_read_from_one_word_are_independent() -> None:
    """Eight base-7 digits of a word lie an eighth of the whole apart."""
    from scipy import stats

    digits = uniform_indices(7, 8 * 50_000, np.random.default_rng(1)).reshape(8, -1)
    for first, second in product(range(8), repeat=2):
        if first < second:
            pairs = np.bincount(digits[first].astype(int) * 7 + digits[second], minlength=49)
            assert stats.chisquare(pairs).pvalue > 1e-4


@given(st.integers(1, 2**40), st.integers(0, 30), st.integers(0, 5))
def test_any_bound_and_any_number(bound: int, size: int, seed: int) -> None:
    drawn = uniform_indices(bound, size, np.random.default_rng(seed))
    assert drawn.shape == (size,)
    assert (drawn < bound).all()


def test_counts_have_the_multinomial_law_within_each_block() -> None:
    from scipy import stats

    sizes, n = (3, 2), 60_000
    counts = Multiplicities(sizes, n).draw(np.random.default_rng(2)).astype(int)
    three, two = counts[:, :3], counts[:, 3:]
    for block, size in ((three, 3), (two, 2)):
        kinds = [k for k in product(range(size + 1), repeat=size) if sum(k) == size]
        found = [int((block == kind).all(axis=1).sum()) for kind in kinds]
        chance = [factorial(size) / prod(map(factorial, k)) / size**size for k in kinds]
        assert sum(found) == n
        assert stats.chisquare(found, n * np.array(chance)).pvalue > 1e-3
    assert abs(np.corrcoef(three[:, 0], two[:, 0])[0, 1]) < 4 / n**0.5


def test_a_draw_does_not_depend_on_the_draws_before_it() -> None:
    again = Multiplicities((4, 5), 50)
    again.draw(np.random.default_rng(1))
    fresh = Multiplicities((4, 5), 50).draw(np.random.default_rng(2))
    assert np.array_equal(again.draw(np.random.default_rng(2)), fresh)
