"""Influence of clusters on a statistic: its derivative along each cluster's sums.

Source: Davison and Hinkley 1997, sections 2.7 and 3.8. Of a paired difference: pass a statistic
that is a difference.
"""

from __future__ import annotations

import numpy as np

from trajudge.eval.stats.interval import Floats
from trajudge.eval.stats.intervals.cluster_bootstrap import Clusters, Statistic

STEP = 1e-4


def influence_values(clusters: Clusters, statistic: Statistic) -> Floats:
    """Return the central differences of the statistic along each cluster's sums, (C, S)."""
    total = clusters.total
    with np.errstate(divide="ignore", invalid="ignore"):
        above = statistic(total + STEP * clusters.sums)
        below = statistic(total - STEP * clusters.sums)
    return np.asarray((above - below) / (2 * STEP))
