"""Differences between two rates on the same tasks, such as a judge's precision and the rule's.

The limits of the difference come from the limits of both rates and the correlation that the tasks
show between them: the method of variance estimates recovery (Zou and Donner 2008), which keeps
each rate's own interval, sound near 0 and 1. The p-value is the least level at which the interval
excludes zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, Ints
from trajudge.eval.stats.intervals.binomial import wilson_limits
from trajudge.eval.stats.intervals.cluster_bootstrap import sum_clusters
from trajudge.eval.stats.intervals.clustered_rates import (
    between_clusters,
    rate_evidence,
    unequal,
)

_BISECTIONS = 16  # of the logarithm over nine decades: p to three parts in ten thousand
Transform = Callable[[Floats], Floats]
Ends = Callable[[ArrayLike], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class RateDifferences:
    """``first - second`` (...), and the two-sided p-value of "no difference"."""

    interval: Interval
    p_value: Floats


def clustered_differences(
    hits: ArrayLike,
    trials: ArrayLike,
    stratum_sizes: ArrayLike,
    confidence: float = 0.95,
    *,
    transform: Transform = np.asarray,
    squares: ArrayLike | None = None,
) -> RateDifferences:
    """From ``hits`` and ``trials`` (2, ..., C) of C tasks, first and second; ``transform`` is an
    increasing function of a rate, of which the difference is then (F1 of its J). Of weighted
    trials, ``squares`` (2, ..., C) are the sums of squared weights (``clustered_rates``).

    Undefined where either rate or its interval is.
    """
    difference, ends = _ends_by_level(hits, trials, stratum_sizes, transform, squares)
    with np.errstate(invalid="ignore"):
        low, high = ends(1 - confidence)
        p_value = _p_value(ends, difference)
    return RateDifferences(Interval(difference, low, high, confidence), p_value)


def differences_by_cluster(
    first: ArrayLike,
    second: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike | None = None,
    *,
    trials: ArrayLike = 1.0,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
) -> RateDifferences:
    """Difference (1,) of two rates on N observations: hits of the ``first`` and ``second`` (N,)
    among ``trials``, (N,) for both or (2, N), by ``cluster`` (N,) within ``stratum`` (N,), labels
    of any kind; ``weights`` (N,) as of ``rates_by_cluster``."""
    hits = np.stack([np.asarray(part, dtype=float) for part in (first, second)])
    tried = np.broadcast_to(np.asarray(trials, dtype=float), hits.shape)
    weight = unequal(weights)
    each = 1.0 if weight is None else weight
    columns = np.concatenate([hits * each, tried * each, tried * np.square(each)])
    clusters = sum_clusters(columns.T, cluster, stratum)
    h, n, squares = clusters.sums.T.reshape(3, 2, 1, -1)
    return clustered_differences(
        h,
        n,
        clusters.stratum_sizes,
        confidence,
        squares=None if weight is None else squares,
    )


def difference_limits(
    hits: ArrayLike,
    trials: ArrayLike,
    stratum_sizes: ArrayLike,
    confidence: float = 0.95,
    squares: ArrayLike | None = None,
) -> Interval:
    """Compute the difference (...) and its limits as ``clustered_differences``, without a
    p-value, which takes a search."""
    difference, ends = _ends_by_level(hits, trials, stratum_sizes, np.asarray, squares)
    with np.errstate(invalid="ignore"):
        low, high = ends(1 - confidence)
    return Interval(difference, low, high, confidence)


def _ends_by_level(
    hits: ArrayLike,
    trials: ArrayLike,
    stratum_sizes: ArrayLike,
    transform: Transform,
    squares: ArrayLike | None = None,
) -> tuple[Floats, Ends]:
    """Return the difference (...), and a function from a level to its limits."""
    h, n = np.asarray(hits, dtype=float), np.asarray(trials, dtype=float)
    sizes = np.asarray(stratum_sizes, dtype=np.int64)
    rates = rate_evidence(h, n, sizes, squares)
    correlation = np.minimum(
        _correlation(h - rates.rate[..., None] * n, sizes),
        _most_correlation(rates.clusters.min(axis=0)),
    )
    value = transform(rates.rate)
    difference = value[0] - value[1]

    def ends(level: ArrayLike) -> tuple[Floats, Floats]:
        # The clusters show the correlation of the two rates as well: all of it is estimated.
        quantile = scipy.special.stdtrit(rates.clusters, 1 - np.asarray(level) / 2)
        limits = wilson_limits(rates.rate, rates.trials, quantile)
        low, high = (transform(end) for end in limits)
        down, up = value - low, high - value
        below = down[0] ** 2 - 2 * correlation * down[0] * up[1] + up[1] ** 2
        above = up[0] ** 2 - 2 * correlation * up[0] * down[1] + down[1] ** 2
        return difference - np.sqrt(below), difference + np.sqrt(above)

    return difference, ends


def _correlation(deviations: Floats, sizes: Ints) -> Floats:
    """Of the two rates over draws of tasks, from deviations (2, ..., C); 0 where one is still."""
    both = between_clusters(deviations[0], sizes, deviations[1])
    variances = between_clusters(deviations, sizes)
    spread = np.sqrt(variances[0] * variances[1])
    some = spread > 1e-12
    return np.asarray(np.where(some, np.clip(both / np.where(some, spread, 1.0), -1, 1), 0.0))


def _most_correlation(df: Floats) -> Floats:
    """Return the largest correlation that so many degrees of freedom can support. That of two tasks
    is always 1 or -1, and at 1 the limits do not move with the level. From four degrees on the
    distance to 1 falls with their square: judges that are all but one keep a narrow interval."""
    return np.asarray(1 - np.minimum(1 / df, 4 / df**2))


def _p_value(ends: Ends, difference: Floats) -> Floats:
    """By bisection of the level, in its logarithm: small p-values keep their digits."""
    small, large = np.full(difference.shape, np.log(1e-9)), np.zeros(difference.shape)
    for _ in range(_BISECTIONS):
        middle = (small + large) / 2
        low, high = ends(np.exp(middle))
        apart = (low > 0) | (high < 0)
        small, large = np.where(apart, small, middle), np.where(apart, middle, large)
    return np.where(np.isnan(ends(np.full(difference.shape, 0.05))[0]), np.nan, np.exp(large))
