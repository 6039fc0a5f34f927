"""pass@k against enumeration of subsets, and Remark 1 by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats.suites import pass_at_k, pass_hat_k, replay_equivalence, replay_success


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


def test_a_blind_replay_scores_pass_at_k() -> None:
    """Within four standard errors; and single attempts score less (Remark 1)."""
    rng = np.random.default_rng(0)
    rates = rng.beta(0.5, 1.0, 200)
    for k in (1, 4, 16):
        found = replay_equivalence(rates, k, rng)
        assert abs(found.replayed - found.pass_at_k) < 4 * found.standard_error
        assert found.single <= found.pass_at_k + 1e-12


def test_enough_rollouts_solve_any_static_benchmark() -> None:
    """Corollary 2: rates of 1 % become 95 % at 300 rollouts."""
    assert replay_equivalence(np.full(5, 0.01), 300, np.random.default_rng(0)).pass_at_k > 0.95


def test_replaying_recorded_rollouts_has_the_estimator_as_mean() -> None:
    c, n = np.array([0, 1, 3, 6]), np.array([6, 6, 6, 6])
    scores = replay_success(c, n, 2, np.random.default_rng(0), 20_000)
    assert scores.mean() == pytest.approx(pass_at_k(c, n, 2).mean(), abs=0.005)
    with pytest.raises(ValueError, match="fewer than k"):
        replay_success(c, n, 7, np.random.default_rng(0), 1)


@pytest.mark.parametrize(("c", "n", "k"), [(3, 2, 1), (-1, 2, 1), (1, 2, 0)])
def test_impossible_counts_are_refused(c: int, n: int, k: int) -> None:
    with pytest.raises(ValueError, match="k must be"):
        pass_at_k(c, n, k)
