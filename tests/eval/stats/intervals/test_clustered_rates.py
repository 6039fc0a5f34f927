"""Intervals over tasks: against statsmodels' cluster-robust errors, and where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.eval.stats.intervals.clustered_agreement import clustered_agreement
from trajudge.eval.stats.intervals.clustered_rates import (
    between_clusters,
    clustered_limits,
    clustered_rates,
    rates_by_cluster,
)

NEEDED = "statsmodels, the reference here, is not installed"
RNG = np.random.default_rng(11)
TASK = np.repeat(np.arange(60), RNG.integers(1, 7, 60))
RATE = RNG.beta(2, 1, 60)
HIT = (RNG.random(len(TASK)) < RATE[TASK]).astype(float)


@pytest.mark.slow
def test_the_variance_is_statsmodels_cluster_robust_one() -> None:
    api = pytest.importorskip("statsmodels.api", reason=NEEDED)
    fit = api.OLS(HIT, np.ones(len(HIT))).fit(
        cov_type="cluster", cov_kwds={"groups": TASK, "use_correction": False}
    )
    hits, trials = np.bincount(TASK, HIT), np.bincount(TASK).astype(float)
    mean = HIT.mean()
    variance = between_clusters(hits - mean * trials, np.array([60])) / len(HIT) ** 2
    # statsmodels without its correction lacks the factor C / (C - 1).
    assert variance == pytest.approx(fit.bse[0] ** 2 * 60 / 59)
    found = rates_by_cluster(HIT, np.ones(()), TASK)
    naive = mean * (1 - mean) / len(HIT)
    assert found.design_effect[0] == pytest.approx(variance / naive, rel=0.02)


def test_many_tasks_of_one_trajectory_give_wilsons_interval() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason=NEEDED)
    hit = np.arange(4000) % 10 < 3
    found = rates_by_cluster(hit, np.ones(()), np.arange(4000)).interval
    expected = proportion.proportion_confint(1200, 4000, method="wilson")
    assert (found.low[0], found.high[0]) == pytest.approx(expected, abs=2e-4)


def test_four_equal_trajectories_of_a_task_are_one() -> None:
    once = np.arange(50) % 3 == 0
    one = rates_by_cluster(once, np.ones(()), np.arange(50))
    four = rates_by_cluster(np.repeat(once, 4), np.ones(()), np.repeat(np.arange(50), 4))
    assert four.design_effect[0] == pytest.approx(4, rel=0.03)
    assert four.interval.width[0] == pytest.approx(one.interval.width[0], rel=0.03)


def test_one_task_tells_nothing_of_the_next() -> None:
    found = clustered_rates([[3.0], [0.0]], [[4.0], [0.0]], [1])
    assert np.isnan(found.interval.low).all()
    assert any("one task only" in note for note in found.interval.notes)


def test_a_few_large_tasks_count_as_few() -> None:
    hits = np.r_[np.tile([0.0, 1.0], 20), np.tile([3.0, 9.0], 4)]
    even, ragged = np.ones(40), np.r_[np.ones(40), np.full(8, 12.0)]
    assert clustered_rates(hits, ragged, [48]).df < 16
    assert clustered_rates(hits[:40], even, [40]).df == 39


def test_strata_of_one_task_are_taken_together() -> None:
    together = clustered_rates([1.0, 2, 3, 2], [4.0, 4, 4, 4], [1, 1, 1, 1])
    apart = clustered_rates([1.0, 2, 3, 2], [4.0, 4, 4, 4], [4])
    assert together.interval.low == apart.interval.low


def test_strata_in_which_one_task_has_trials_share_one_mean() -> None:
    """Nothing in such a stratum is measured around its own mean, so that none is paid for it."""
    hits, trials = np.array([3.0, 0, 1, 0, 4, 0, 2, 0]), np.array([4.0, 0, 4, 0, 4, 0, 4, 0])
    assert clustered_rates(hits, trials, [2, 2, 2, 2]).df == 3
    both = np.where(trials > 0, trials, 4.0)
    assert clustered_rates(hits, both, [2, 2, 2, 2]).df == 4
    assert clustered_rates(hits, trials, [1, 1, 2, 1, 1, 2]).df == 3


def test_rates_cover_in_many_small_strata_and_are_not_all_of_the_line() -> None:
    """Seven applications with a task run many times and one run once, as in the bundled sample,
    whose rates differ; a judge accepts a seventh of the runs."""
    rng, draws = np.random.default_rng(3), 4000
    runs = np.array([16, 15, 1, 1, 16, 1, *[15, 1] * 5])
    sizes = np.array([4, 2, 2, 2, 2, 2, 2])
    rate = np.repeat([0.9, 0.3, 0.6, 0.5, 0.8, 0.4, 0.7], sizes)
    accepted = rng.binomial(np.broadcast_to(runs, (draws, 16)), 1 / 7)
    right = rng.binomial(accepted, rng.beta(2 * rate, 2 * (1 - rate), (draws, 16)))
    interval = clustered_rates(right, accepted, sizes).interval
    truth = (runs * rate).sum() / runs.sum()
    assert ((interval.low <= truth) & (truth <= interval.high)).mean() >= 0.95
    assert interval.width.mean() < 0.75


def test_kappa_is_bounded_where_the_tasks_bound_it() -> None:
    counts = RNG.multinomial(4, [0.3, 0.1, 0.1, 0.5], 80)
    kappa, mcc = clustered_agreement(counts, [80])
    for interval in (kappa, mcc):
        assert 0 < interval.low < interval.estimate < interval.high < 1
    few, _ = clustered_agreement(counts[:2], [2])
    assert np.isnan(few.low)


def test_limits_as_numbers_know_who_succeeds_together() -> None:
    hits = [True] * 12 + [False] * 12
    alone = clustered_limits(hits, range(24))
    together = clustered_limits(hits, [place // 6 for place in range(24)])
    assert alone[0] == pytest.approx(rates_by_cluster(hits, 1.0, np.arange(24)).interval.low[0])
    assert together[0] is not None
    assert alone[0] is not None
    assert together[0] < alone[0] - 0.1
    assert clustered_limits([True, False], ["a", "a"]) == (None, None)
    assert clustered_limits([True, False], ["a", "a"], ["x", "y"]) != (None, None)
    assert clustered_limits([], []) == (None, None)
