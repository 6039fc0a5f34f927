"""The statistics that one import gives."""

from __future__ import annotations

import numpy as np

from trajudge import stats


def test_eight_functions_are_public_and_documented() -> None:
    assert stats.__all__ == sorted(stats.__all__)
    assert len(stats.__all__) <= 10
    assert all((getattr(stats, name).__doc__ or "").strip() for name in stats.__all__)


def test_arrays_go_in_and_come_out() -> None:
    from scipy.stats import binomtest

    truth = binomtest(7, 10).proportion_ci(method="wilson")
    found = stats.wilson(7, 10)
    np.testing.assert_allclose([found.low, found.high], [truth.low, truth.high])
    hits = np.array([1, 0, 1, 1, 0, 1])
    rate = stats.rates_by_cluster(hits, np.ones(6), ["a", "a", "b", "b", "c", "c"]).interval
    assert rate.low[0] < rate.estimate[0] == hits.mean() < rate.high[0]
    np.testing.assert_allclose(stats.holm([0.01, 0.04]), [0.02, 0.04])
