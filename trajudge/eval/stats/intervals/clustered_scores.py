"""Intervals of the metrics of scores in [0, 1] when trials come in clusters (tasks).

ROC-AUC, average precision and Brier's score are smooth functions of sums over clusters: their
cluster-robust variance follows from influence values (as Obuchowski 1997 has it for the area under
the curve), and their limits from Wilson's score interval on the number of trials that a rate of
that variance has. The binned calibration error has no interval: it is biased upwards, so that none
around it covers; ``eval.stats.judging.calibration`` gives every bin its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, t_quantile
from trajudge.eval.stats.intervals.binomial import wilson_limits
from trajudge.eval.stats.intervals.clustered_rates import (
    PRIOR_CLUSTERS,
    between_clusters,
    degrees_of_freedom,
)
from trajudge.eval.stats.intervals.influence import STEP
from trajudge.eval.stats.judging.score_metrics import BINS, score_statistic

BIASED = "a binned calibration error is biased upwards: --calibration shows every bin"


def clustered_scores(
    sums: ArrayLike, stratum_sizes: ArrayLike, bins: int = BINS, confidence: float = 0.95
) -> Interval:
    """ROC-AUC, average precision, Brier's score and calibration error (..., 4) from the sums
    (..., C, 2K + 1 + bins) of ``score_columns`` over C clusters; the last without ends."""
    table, sizes = np.asarray(sums, dtype=float), np.asarray(stratum_sizes, dtype=np.int64)
    levels = (table.shape[-1] - 1 - bins) // 2
    positives, negatives = (
        table[..., part].sum(axis=-1) for part in (slice(levels), slice(levels, 2 * levels))
    )
    # The rarer class limits what is known of an order; a mean knows all trials.
    rarer = np.fmin(_effective(positives), _effective(negatives))
    ranked = np.fmin(degrees_of_freedom(positives, sizes), degrees_of_freedom(negatives, sizes))
    every = positives + negatives
    most = np.stack([rarer, rarer, _effective(every)], axis=-1)
    df = np.stack([ranked, ranked, degrees_of_freedom(every, sizes)], axis=-1)
    estimate = np.asarray(score_statistic(bins)(table.sum(axis=-2)))
    rate, influence = estimate[..., :3], _influence(table, bins)
    moving = np.nan_to_num(_effective(influence**2))
    spread = rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = moving * between_clusters(influence, sizes) + PRIOR_CLUSTERS * spread / most
        variance /= moving + PRIOR_CLUSTERS
        trials = np.where(spread > 1e-12, spread / variance, most)
        ends = wilson_limits(rate, trials, t_quantile(confidence, df))
    nothing = np.full((*estimate.shape[:-1], 1), np.nan)
    low, high = (np.concatenate([end, nothing], axis=-1) for end in ends)
    return Interval(estimate, low, high, confidence, (BIASED,))


def _influence(table: Floats, bins: int) -> Floats:
    """Influence of every cluster on the first three metrics, (..., 3, C)."""
    statistic, total = score_statistic(bins), table.sum(axis=-2, keepdims=True)
    up, down = statistic(total + STEP * table), statistic(total - STEP * table)
    return np.swapaxes(np.asarray(up - down)[..., :3] / (2 * STEP), -1, -2)


def _effective(sizes: Floats) -> Floats:
    """Effective number of clusters of these sizes (..., C): (Σ size)² / Σ size²."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sizes.sum(axis=-1) ** 2 / np.square(sizes).sum(axis=-1))
