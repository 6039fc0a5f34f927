"""The cluster bootstrap's closed-form twin: influence functions, no random numbers.

The influence of a cluster is the derivative of the statistic along that cluster's sums; their
variance within strata is the cluster-robust (linearisation) variance. Source: Davison and
Hinkley 1997, sections 2.7 and 3.8. Paired differences need nothing more: pass a statistic that
is a difference.
"""

from __future__ import annotations

import numpy as np

from trajudge.eval.stats.interval import Floats, Interval, t_quantile
from trajudge.eval.stats.intervals.cluster_bootstrap import ONE_CLUSTER, Clusters, Statistic

STEP = 1e-4


def influence_values(clusters: Clusters, statistic: Statistic) -> Floats:
    """Central differences of the statistic along each cluster's sums, (C, S)."""
    total = clusters.total
    with np.errstate(divide="ignore", invalid="ignore"):
        above = statistic(total + STEP * clusters.sums)
        below = statistic(total - STEP * clusters.sums)
    return np.asarray((above - below) / (2 * STEP))


def standard_error(clusters: Clusters, statistic: Statistic) -> Floats:
    """Cluster-robust standard error (S,); a stratum of one cluster contributes nothing."""
    values = influence_values(clusters, statistic)
    variance = np.zeros(values.shape[1:])
    for part in np.split(values, np.cumsum(clusters.stratum_sizes)[:-1]):
        m = len(part)
        if m > 1:
            variance += m / (m - 1) * ((part - part.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(variance))


def delta_interval(clusters: Clusters, statistic: Statistic, confidence: float = 0.95) -> Interval:
    """``estimate ± t * standard error`` (S,), with clusters - strata degrees of freedom."""
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.atleast_1d(statistic(clusters.total))
    if not clusters.resamplable:
        nothing = np.full(estimate.shape, np.nan)
        return Interval(estimate, nothing, nothing, confidence, (ONE_CLUSTER,))
    sizes = clusters.stratum_sizes[clusters.stratum_sizes > 1]
    half = t_quantile(confidence, float(sizes.sum() - len(sizes)))
    half = half * standard_error(clusters, statistic)
    undefined = np.isnan(estimate).sum()
    notes = (f"{undefined} statistics are undefined: a denominator is zero",) if undefined else ()
    return Interval(estimate, estimate - half, estimate + half, confidence, notes)
