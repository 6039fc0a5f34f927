"""pass@k against enumeration of subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats.suites import pass_at_k, pass_hat_k


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_both_are_means_over_all_subsets(outcomes: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(outcomes)))
    subsets = list(combinations(outcomes, k))
    some, every = np.mean([any(s) for s in subsets]), np.mean([all(s) for s in subsets])
    assert pass_at_k(sum(outcomes), len(outcomes), k) == pytest.approx(some)
    assert pass_hat_k(sum(outcomes), len(outcomes), k) == pytest.approx(every)


def test_large_counts_stay_exact() -> None:
    assert pass_at_k(1, 10_000, 5000) == pytest.approx(0.5)
    assert pass_at_k(10_000, 10_000, 10_000) == 1


def test_too_few_rollouts_are_undefined_not_guessed() -> None:
    assert np.isnan(pass_at_k([1, 2], [2, 5], 3)).tolist() == [True, False]
    assert np.isnan(pass_hat_k(1, 2, 3))


@pytest.mark.parametrize(("c", "n", "k"), [(3, 2, 1), (-1, 2, 1), (1, 2, 0)])
def test_impossible_counts_are_refused(c: int, n: int, k: int) -> None:
    with pytest.raises(ValueError, match="k must be"):
        pass_at_k(c, n, k)
