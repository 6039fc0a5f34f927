"""Which candidates meet the target, after correcting for how many were tried.

Both corrections keep the chance that any candidate is let through although its true rate is below
the target at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from trajudge.eval.select.measures.rates import RateSums
from trajudge.stats.intervals import Bools, Clusters, Floats, Ints, Statistic, bootstrap_replicates

_ROUNDING = 1e-9


def min_trials(bound: float, level: float) -> int:
    """Count how many trials, all of them hits, reject "the rate is below ``bound``" at
    ``level``."""
    return math.ceil(math.log(level) / math.log(bound))


def fixed_sequence(
    p: Floats, families: Sequence[Sequence[int]], testable: Bools, alpha: float
) -> Bools:
    """Apply Learn-then-Test (Angelopoulos et al. 2021, section 4.2): which of L candidates pass,
    (L,).

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
    """Find the level at which each candidate is tested so that all together err with ``alpha``.

    Single-step max-T (Westfall and Young 1993): the upper quantile of the largest studentised
    excess over resamples of whole tasks. It takes account of candidates that overlap and so err
    together, and of the skewness of a high rate, which the t distribution does not know.
    ``clusters`` has the columns hits | trials.
    """
    width = rates.hits.size
    excess = clusters.sums[:, :width] - bound * clusters.sums[:, width:]
    moving = rates.variance(bound) > 0
    if not moving.any() or not clusters.resamplable:
        return alpha / max(width, 1)
    columns, largest = _studentised(excess[:, moving], clusters.stratum_sizes)
    drawn = bootstrap_replicates(
        Clusters(columns, clusters.stratum_sizes), largest, rng, n_resamples
    )
    critical = np.nanquantile(drawn[0], 1 - alpha)
    level = float(scipy.special.stdtr(rates.df.max(), -critical))
    return min(level, alpha)


def _studentised(excess: Floats, stratum_sizes: Ints) -> tuple[Floats, Statistic]:
    """Make columns (C, K) and the function of their totals that gives, of a resample, the largest
    of all candidates' sums of excess over its own standard error, about the sample's mean."""
    sizes = stratum_sizes.tolist()
    strata = np.repeat(np.arange(len(sizes)), sizes)
    m = stratum_sizes.astype(float)
    factor = np.where(m > 1, m / np.maximum(m - 1, 1), 1.0)
    mean = np.stack([part.mean(axis=0) for part in np.split(excess, np.cumsum(sizes)[:-1])])
    centred = excess - mean[strata]
    apart = [centred * (strata == h)[:, None] for h in range(len(sizes))]
    squares = centred**2 * factor[strata][:, None]
    count = excess.shape[1]

    def largest(totals: Floats) -> Floats:
        by_stratum = totals[..., count:].reshape(*totals.shape[:-1], len(sizes), count)
        spread = totals[..., :count] - ((factor / m)[:, None] * by_stratum**2).sum(axis=-2)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = by_stratum.sum(axis=-2) / np.sqrt(spread)
        # A resample without any spread says nothing of that candidate.
        t = np.where(spread > _ROUNDING, t, -np.inf)
        return np.asarray(t.max(axis=-1, keepdims=True))

    return np.concatenate([squares, *apart], axis=1), largest
