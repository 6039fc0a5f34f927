"""Metrics of scores as functions of sums, against scikit-learn and a loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from trajudge.stats.intervals import (
    BINS,
    Floats,
    cluster_bootstrap,
    score_columns,
    score_statistic,
    sum_clusters,
)

# Ties and the ends of bins are frequent.
ITEMS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda k: k / 20), st.booleans()), min_size=1, max_size=60
)


def metrics(scores: Floats, truth: ArrayLike) -> Floats:
    return np.asarray(score_statistic()(score_columns(scores, truth).sum(axis=0)))


def calibration_error_by_loop(scores: Floats, truth: Floats) -> float:
    error = 0.0
    for bin_ in range(BINS):
        last = bin_ == BINS - 1
        inside = [
            i
            for i, s in enumerate(scores)
            if int(s * BINS) == bin_ or (last and int(s * BINS) > bin_)
        ]
        if inside:
            error += abs(truth[inside].mean() - scores[inside].mean()) * len(inside)
    return error / len(scores)


@pytest.mark.slow
@given(ITEMS)
def test_they_are_scikit_learns(items: list[tuple[float, bool]]) -> None:
    from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

    scores = np.array([score for score, _ in items])
    truth = np.array([float(right) for _, right in items])
    auc, ap, brier, error = metrics(scores, truth)
    if 0 < truth.sum() < len(truth):
        assert auc == pytest.approx(roc_auc_score(truth, scores), abs=1e-9)
    else:
        assert np.isnan(auc)
    if truth.any():
        assert ap == pytest.approx(average_precision_score(truth, scores), abs=1e-9)
    else:
        assert np.isnan(ap)
    assert brier == pytest.approx(np.mean((scores - truth) ** 2), abs=1e-9)
    if 0 < truth.sum() < len(truth):
        assert brier == pytest.approx(brier_score_loss(truth, scores), abs=1e-9)
    assert error == pytest.approx(calibration_error_by_loop(scores, truth), abs=1e-9)


def test_sums_of_a_resample_are_the_metrics_of_the_resample() -> None:
    rng = np.random.default_rng(0)
    scores, truth = rng.integers(0, 11, 80) / 10, rng.random(80) < 0.4
    task = np.arange(80) % 20
    clusters = sum_clusters(score_columns(scores, truth), task)
    weights = rng.multinomial(20, np.full(20, 1 / 20))
    repeated = np.repeat(np.arange(80), weights[task])
    found = score_statistic()(weights @ clusters.sums)
    assert found == pytest.approx(metrics(scores[repeated], truth[repeated]))
    interval = cluster_bootstrap(clusters, score_statistic(), rng, n_resamples=200)
    assert np.all((interval.low <= interval.estimate) & (interval.estimate <= interval.high))


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_a_score_outside_zero_and_one_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        score_columns([0.5, bad], [True, False])
