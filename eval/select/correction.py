"""Which candidates meet the target, after correcting for how many were tried.

Both corrections keep the chance that any candidate is let through although its true rate is below
the target at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from eval.select.rates import RateSums
from eval.stats.cluster_bootstrap import Clusters, bootstrap_replicates
from eval.stats.interval import Bools, Floats


def least_trials(bound: float, level: float) -> int:
    """How many trials, all of them hits, reject "the rate is below ``bound``" at ``level``."""
    return math.ceil(math.log(level) / math.log(bound))


def fixed_sequence(
    p: Floats, families: Sequence[Sequence[int]], testable: Bools, alpha: float
) -> Bools:
    """Learn-then-Test (Angelopoulos et al. 2021, section 4.2): which of L candidates pass, (L,).

    Every family (candidates in their order, strict to loose) has ``alpha`` over the number of
    families, and stops at its first failure. Candidates that could not have passed whatever their
    labels are (``testable`` False) are passed over; this looks at no label.
    """
    level = alpha / max(len(families), 1)
    passed = np.zeros(len(p), dtype=bool)
    for family in families:
        for candidate in family:
            if not testable[candidate]:
                continue
            if not p[candidate] <= level:
                break
            passed[candidate] = True
    return passed


def max_t_level(
    clusters: Clusters,
    rates: RateSums,
    bound: float,
    alpha: float,
    rng: np.random.Generator,
    *,
    n_resamples: int = 10_000,
) -> float:
    """The level at which each candidate is tested so that all together err with ``alpha``.

    Single-step max-T (Westfall and Young 1993): the upper quantile of the largest standardised
    excess over resamples of whole tasks. Candidates that overlap err together, so the level lies
    between ``alpha / L`` and ``alpha``. ``clusters`` has the columns hits | trials.
    """
    width = rates.hits.size
    excess = clusters.sums[:, :width] - bound * clusters.sums[:, width:]
    spread = np.sqrt(rates.variance(bound))
    moving = spread > 0
    if not moving.any() or not clusters.resamplable:
        return alpha / max(width, 1)
    some = Clusters(excess[:, moving], clusters.stratum_sizes)
    drawn = bootstrap_replicates(some, lambda totals: totals, rng, n_resamples)
    scaled = (drawn - some.total[:, None]) / spread[moving][:, None]
    critical = np.quantile(scaled.max(axis=0), 1 - alpha)
    alone = float(special.ndtr(-critical))
    return min(max(alone, alpha / width), alpha)
