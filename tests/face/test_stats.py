"""The statistics that one import gives."""

from __future__ import annotations

import numpy as np

from trajudge import stats


def test_what_covers_is_public_and_documented() -> None:
    assert stats.__all__ == sorted(stats.__all__)
    # Neither knows that runs of a task depend on each other.
    assert not {"wilson", "mcnemar"} & {*stats.__all__}
    assert all((getattr(stats, name).__doc__ or "").strip() for name in stats.__all__)


def test_arrays_go_in_and_come_out() -> None:
    from scipy.stats import binomtest

    hits = np.arange(10) < 7
    truth = binomtest(7, 10).proportion_ci(method="exact")
    found = stats.rates_by_cluster(hits, 1.0, np.arange(10)).interval
    np.testing.assert_allclose([found.low[0], found.high[0]], [truth.low, truth.high])
    tasks = np.repeat(np.arange(40), 4)
    rng = np.random.default_rng(0)
    first, second = rng.random(160) < 0.9, rng.random(160) < 0.5
    apart = stats.differences_by_cluster(first, second, tasks)
    assert apart.interval.low[0] > 0 and apart.p_value[0] < 0.001
    weights = rng.uniform(1, 3, 160)
    weighted = stats.differences_by_cluster(first, second, tasks, weights=weights).interval
    expected = np.average(first, weights=weights) - np.average(second, weights=weights)
    np.testing.assert_allclose(weighted.estimate, expected)
    assert stats.mcnemar_by_task(first, second, stats.TaskRuns.of(tasks)) < 0.001
    tree = stats.tree_from_rollouts(["a"] * 160, tasks, first.astype(int))
    suite = stats.hierarchical_bootstrap(tree, rng, n_resamples=50).suite
    assert suite.low[0] < first.mean() < suite.high[0]
    np.testing.assert_allclose(stats.interquartile_mean(np.array([0.0, 0.4, 0.6, 1.0])), 0.5)
    hits = np.array([1, 0, 1, 1, 0, 1])
    rate = stats.rates_by_cluster(hits, np.ones(6), ["a", "a", "b", "b", "c", "c"]).interval
    assert rate.low[0] < rate.estimate[0] == hits.mean() < rate.high[0]
    np.testing.assert_allclose(stats.holm([0.01, 0.04]), [0.02, 0.04])
