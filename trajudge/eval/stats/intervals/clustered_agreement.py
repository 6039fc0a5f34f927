"""Intervals of Cohen's kappa and Matthews' correlation when trials come in clusters (tasks).

Both are ratios N / D of functions of the confusion counts. As in Fieller's interval of a ratio
(Fieller 1954; Cochran 1977, section 6) a value r is inside while N - r D lies within t standard
errors of 0, the errors being cluster-robust and those of N - r D itself, not of the ratio: a
resampled ratio is too narrow where positives are few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, t_quantile
from trajudge.eval.stats.intervals.clustered_rates import between_clusters, degrees_of_freedom

UNBOUNDED = "too few tasks: every value from -1 to 1 agrees with them"


def clustered_agreement(
    counts: ArrayLike, stratum_sizes: ArrayLike, confidence: float = 0.95
) -> tuple[Interval, Interval]:
    """Kappa's and Matthews' intervals (...), from counts TP, FP, FN, TN of C clusters (..., C, 4).

    Undefined where a margin is zero, with fewer than two clusters, where every cluster agrees
    throughout (nothing varies), and where the tasks are too few to exclude any value.
    """
    cells = np.asarray(counts, dtype=float)
    sizes = np.asarray(stratum_sizes, dtype=np.int64)
    # What neither calls positive tells of neither: kappa and MCC vary with the rest.
    quantile = t_quantile(confidence, degrees_of_freedom(cells[..., :3].sum(axis=-1), sizes))
    total = cells.sum(axis=-2)
    tp, fp, fn, tn = np.moveaxis(total, -1, 0)
    predicted, true, denied, false = tp + fp, tp + fn, tn + fn, tn + fp
    top, top_slope = 2 * (tp * tn - fp * fn), 2 * np.stack([tn, -fn, -fp, tp], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = predicted * false + true * denied
        slope = [false + denied, predicted + false, true + denied, predicted + true]
        kappa = _fieller(cells, sizes, (top, top_slope), (chance, np.stack(slope, -1)), quantile)
        root = 2 * np.sqrt(predicted * true * denied * false)
        parts = [1 / predicted + 1 / true, 1 / predicted + 1 / false]
        parts += [1 / true + 1 / denied, 1 / false + 1 / denied]
        slopes = np.stack(parts, axis=-1) * root[..., None] / 2
        mcc = _fieller(cells, sizes, (top, top_slope), (root, slopes), quantile)
    return Interval(*kappa, confidence), Interval(*mcc, confidence)


Ratio = tuple[Floats, Floats]
"""A value (...) and its derivative by the four counts (..., 4)."""


def _fieller(
    cells: Floats, sizes: np.ndarray, top: Ratio, bottom: Ratio, quantile: Floats
) -> tuple[Floats, Floats, Floats]:
    """Estimate and ends of top / bottom: roots of (N - r D)^2 = t^2 Var(N - r D) in r."""
    n, d = top[0], np.where(bottom[0] > 0, bottom[0], np.nan)
    by_n, by_d = (np.einsum("...ci,...i->...c", cells, slope) for slope in (top[1], bottom[1]))
    t2 = quantile**2
    a = d * d - t2 * between_clusters(by_d, sizes)
    b = n * d - t2 * between_clusters(by_n, sizes, by_d)
    c = n * n - t2 * between_clusters(by_n, sizes)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    low, high = np.maximum((b - root) / a, -1.0), np.minimum((b + root) / a, 1.0)
    wrong = cells[..., 1:3].sum(axis=(-2, -1))
    right = cells[..., 0].sum(axis=-1) + cells[..., 3].sum(axis=-1)
    known = (a > 0) & (wrong > 0) & (right > 0) & ((low > -1) | (high < 1))
    nothing = np.full(np.shape(n), np.nan)
    return np.asarray(n / d), np.where(known, low, nothing), np.where(known, high, nothing)
