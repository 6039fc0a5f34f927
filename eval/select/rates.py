"""Is a rate above a bound? Tests and one-sided limits of L rates at once, on clustered trials.

A rate is hits / trials: of what a candidate accepts, how much succeeded. Trajectories of one task
succeed together, so tasks are clusters within benchmarks (strata). Two p-values are taken and the
larger counts: the exact binomial, right for few trials, and the cluster-robust t, right where
trials of one task agree (Statistical Precipice, section 2.2; Cochran 1977, sections 6 and 9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from eval.stats.cluster_bootstrap import Clusters, sum_clusters
from eval.stats.interval import Floats

_GRID = 64
_BISECTIONS = 40


@dataclass(frozen=True, eq=False)
class RateSums:
    """What the tests need of L rates; everything of shape (L,).

    ``hits - rate * trials`` has the variance ``hh - 2 rate ht + rate^2 tt``; ``df`` are clusters
    with a trial less the strata that have one.
    """

    hits: Floats
    trials: Floats
    hh: Floats
    ht: Floats
    tt: Floats
    df: Floats

    @property
    def estimate(self) -> Floats:
        """hits / trials; ``nan`` without a trial."""
        return np.asarray(self.hits / np.where(self.trials > 0, self.trials, np.nan))

    @property
    def misses(self) -> RateSums:
        """The rate of the other outcome."""
        hh = self.tt - 2 * self.ht + self.hh
        return RateSums(
            self.trials - self.hits, self.trials, hh, self.tt - self.ht, self.tt, self.df
        )

    def variance(self, rate: ArrayLike) -> Floats:
        """Of ``hits - rate * trials``, over draws of whole tasks within benchmarks."""
        at = np.asarray(rate, dtype=float)
        return np.maximum(self.hh - 2 * at * self.ht + at**2 * self.tt, 0)


def cluster_sums(
    hits: ArrayLike, trials: ArrayLike, task: ArrayLike, benchmark: ArrayLike
) -> Clusters:
    """Columns hits | trials (C, 2L) by task, of 0/1 arrays (N, L)."""
    table = np.concatenate([np.asarray(hits, float), np.asarray(trials, float)], axis=1)
    return sum_clusters(table, task, benchmark)


def rate_sums(clusters: Clusters) -> RateSums:
    """The sums of ``cluster_sums``. A benchmark of one task counts with its square, not with
    nothing: its spread is not known."""
    width = clusters.sums.shape[1] // 2
    squares = np.zeros((3, width))
    df = np.zeros(width)
    for part in np.split(clusters.sums, np.cumsum(clusters.stratum_sizes)[:-1]):
        m = len(part)
        centred = part - part.mean(axis=0) if m > 1 else part
        hits, trials = centred[:, :width], centred[:, width:]
        factor = m / (m - 1) if m > 1 else 1.0
        squares += factor * np.stack([hits**2, hits * trials, trials**2]).sum(axis=1)
        active = (part[:, width:] > 0).sum(axis=0)
        df += np.maximum(active - 1, 0)
    total = clusters.total
    hh, ht, tt = squares
    return RateSums(total[:width], total[width:], hh, ht, tt, df)


def p_values(rates: RateSums, bound: ArrayLike) -> Floats:
    """One-sided p-values (L,) of "the rate is below ``bound``"; 1 where nothing was tried."""
    at = np.broadcast_to(np.asarray(bound, dtype=float), rates.hits.shape)
    return np.maximum(binomial_p(rates.hits, rates.trials, at), _cluster_p(rates, at))


def binomial_p(hits: Floats, trials: Floats, bound: ArrayLike) -> Floats:
    """P[Binomial(trials, bound) >= hits], 1 where there is no hit."""
    some = hits > 0
    with np.errstate(invalid="ignore"):
        tail = special.betainc(np.where(some, hits, 1), np.maximum(trials - hits, 0) + 1, bound)
    return np.where(some, tail, 1.0)


def _cluster_p(rates: RateSums, at: Floats) -> Floats:
    tail = special.stdtr(np.where(rates.df > 0, rates.df, np.nan), -_standardised(rates, at))
    return np.where(np.isnan(tail), 1.0, tail)


def _standardised(rates: RateSums, at: Floats) -> Floats:
    excess, spread = rates.hits - at * rates.trials, np.sqrt(rates.variance(at))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = excess / spread
    return np.where(spread > 0, z, np.where(excess > 0, np.inf, -np.inf))


def lower_limits(rates: RateSums, level: ArrayLike) -> Floats:
    """The largest bound (L,) that ``p_values`` rejects at ``level``: the rate is at least that
    with confidence 1 - level; ``nan`` without a trial."""
    alpha = np.broadcast_to(np.asarray(level, dtype=float), rates.hits.shape)
    top = np.nan_to_num(rates.estimate)
    # With few tasks a small bound may pass where a larger one is rejected: look everywhere first.
    rejected = np.stack([p_values(rates, top * part / _GRID) <= alpha for part in range(_GRID)])
    last = np.where(rejected.any(axis=0), _GRID - 1 - rejected[::-1].argmax(axis=0), 0)
    low, high = top * last / _GRID, top * (last + 1) / _GRID
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        passed = p_values(rates, middle) <= alpha
        low, high = np.where(passed, middle, low), np.where(passed, high, middle)
    return np.where(rates.trials > 0, np.where(rejected.any(axis=0), low, 0.0), np.nan)


def upper_limits(rates: RateSums, level: ArrayLike) -> Floats:
    """The rate is at most that with confidence 1 - level."""
    return np.asarray(1 - lower_limits(rates.misses, level))


def design_effects(rates: RateSums) -> Floats:
    """How many times larger the variance is than that of independent trials, at least 1."""
    rate = np.nan_to_num(rates.estimate)
    independent = rates.trials * rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = rates.variance(rate) / independent
    return np.maximum(np.where(independent > 0, ratio, 1.0), 1.0)
