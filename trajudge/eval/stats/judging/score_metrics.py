"""Metrics of scores in [0, 1] as functions of sums, so that the cluster bootstrap resamples them
like counts: ROC-AUC and average precision (ties counted as scikit-learn counts them), Brier's
score (Brier 1950) and the expected calibration error over equal bins (Guo et al. 2017).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats
from trajudge.eval.stats.intervals.cluster_bootstrap import Statistic

BINS = 10


def score_columns(scores: ArrayLike, truth: ArrayLike, bins: int = BINS) -> Floats:
    """Columns (N, 2K + 1 + bins) to sum over clusters, K being the number of distinct scores:
    positives and negatives by descending score, squared error, outcome minus score by bin.

    Raises ValueError for a score outside [0, 1] or nan.
    """
    values, right = np.asarray(scores, float), np.asarray(truth, bool)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("scores must lie between 0 and 1")
    levels, level = np.unique(-values, return_inverse=True)
    at = level[:, None] == np.arange(len(levels))
    where = np.minimum((values * bins).astype(int), bins - 1)[:, None] == np.arange(bins)
    gap = (right - values)[:, None]
    return np.concatenate([at & right[:, None], at & ~right[:, None], gap**2, where * gap], axis=1)


def score_statistic(bins: int = BINS) -> Statistic:
    """Totals (..., 2K + 1 + bins) to ROC-AUC, average precision, Brier's score and calibration
    error (..., 4); nan where undefined (ROC-AUC of one class, precision without a positive)."""

    def statistic(totals: Floats) -> Floats:
        levels = (totals.shape[-1] - 1 - bins) // 2
        positive, negative = totals[..., :levels], totals[..., levels : 2 * levels]
        true, false = positive.cumsum(axis=-1), negative.cumsum(axis=-1)
        positives, negatives = positive.sum(axis=-1), negative.sum(axis=-1)
        n = positives + negatives
        with np.errstate(divide="ignore", invalid="ignore"):
            above = (negative * (true - positive / 2)).sum(axis=-1)
            precision = np.where(positive > 0, true / (true + false), 0)
            rates = [
                above / (positives * negatives),
                (positive * precision).sum(axis=-1) / positives,
                totals[..., 2 * levels] / n,
                np.abs(totals[..., 2 * levels + 1 :]).sum(axis=-1) / n,
            ]
        return np.stack(rates, axis=-1)

    return statistic
