"""Interval of a ratio of two functions of sums over clusters (tasks), as Fieller's.

A value r is inside while N - r D lies within t cluster-robust standard errors of 0 (Fieller 1954;
Cochran 1977, section 6): the errors are those of N - r D, not of the ratio, whose own spread is
underestimated where clusters are few. Derivatives are the influences of
``eval.stats.intervals.influence``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trajudge.eval.stats.interval import Floats
from trajudge.eval.stats.intervals.cluster_bootstrap import Clusters
from trajudge.eval.stats.intervals.clustered_rates import between_clusters
from trajudge.eval.stats.intervals.influence import influence_values

Sums = Callable[[Floats], Floats]
"""From totals (..., K) to values (...)."""


def ratio_limits(
    clusters: Clusters, top: Sums, bottom: Sums, quantile: float
) -> tuple[float, float]:
    """Both ends of ``top / bottom``; ``nan`` where the data exclude no value (the denominator may
    be zero) and where no cluster differs from another."""
    n, d = (float(part(clusters.total)) for part in (top, bottom))
    by_n, by_d = (influence_values(clusters, part) for part in (top, bottom))
    sizes, t2 = clusters.stratum_sizes, quantile**2
    a = d * d - t2 * float(between_clusters(by_d, sizes))
    b = n * d - t2 * float(between_clusters(by_n, sizes, by_d))
    c = n * n - t2 * float(between_clusters(by_n, sizes))
    spread = float(between_clusters(by_n - n / d * by_d, sizes)) if d else np.nan
    if not a > 0 or not spread > 1e-12 * d * d:
        return np.nan, np.nan
    root = np.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a
