"""Is a rate above a bound? Tests and one-sided limits of L rates at once, on clustered trials.

A rate is hits / trials: of what a candidate accepts, how much succeeded. Trajectories of one task
succeed together, so tasks are clusters within benchmarks (strata). Which test counts is decided by
numbers of trials alone, which show no label (``python -m benchmarks.select_errors`` measures all):

- Where no task has two trials, the exact binomial.
- Below ``FEW_TASKS`` tasks of about equal numbers of trials, the exact binomial on one trial of
  each task, drawn at random. There every task counts alike; unless all have equally many trials,
  the cluster-robust p-value must agree, as small tasks may succeed more often than large ones.
- Elsewhere the larger of two p-values: that of the exact binomial, and that of a cluster-robust t,
  right where trials of one task agree (Statistical Precipice, section 2.2; Cochran 1977, sections 6
  and 9).

The plain t errs too often: near a high bound the few tasks that fail throughout carry most of the
variance, and where none of them was drawn the rate looks both higher and more certain than it is.
Four things keep the test to its level: t is corrected for skewness (Hall 1992, On the removal of
skewness by transformation); as half a count is added to a proportion, a third of a task that failed
throughout is added, the less the more such tasks were drawn; the degrees of freedom are those of
the effective number of tasks (Kish 1965); and where the numbers of trials are uneven the p-value is
multiplied by the cube of the number of tasks over 1.25 times the effective one.

Weighted trials (labels drawn with unequal probabilities) have the t of their weighted sums by task
alone, to which a third of a failed task of the average weight is added. A bet on every task
(``eval.acceptance.betting``) would be exact and have a seventh of its power.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from trajudge.stats.intervals import Bools, Clusters, Floats, Ints, sum_clusters

FEW_TASKS = 20
_EVEN, _ABOUT_EVEN = 1.25, 1.5  # tasks over the effective number of them
_GRID = 64
_BISECTIONS = 40
# Chosen by the simulation: the smallest that keep the test to its level on the whole grid.
_FAILED_TASK = 1 / 3
_MOST_SKEWED = 0.5
_LARGEST_T = 50.0


@dataclass(frozen=True, eq=False)
class TaskSums(Clusters):
    """Columns hits | trials (C, 2L) by task. ``picked`` (L,) counts the hits among one trial of
    each task, drawn at random; None where no trial can be drawn. Of weighted trials the columns are
    sums of weights, ``squares`` (C, L) those of their squares, and ``counted`` (2L,) the numbers of
    hits and trials."""

    picked: Floats | None = None
    squares: Floats | None = None
    counted: Floats | None = None


@dataclass(frozen=True, eq=False)
class RateSums:
    """What the tests need of L rates; everything of shape (L,).

    ``hits - rate * trials`` has the variance ``hh - 2 rate ht + rate^2 tt`` and, from ``cubes``
    (4, L), the sums of hits^3, hits^2 trials, hits trials^2 and trials^3 about their means, its
    third moment. ``tasks`` have a trial, ``effective`` is Kish's number of them; ``df`` is the
    latter less the strata that have one. ``size`` is that of the task of a trial, on average.
    ``all_missed`` counts tasks of two trials or more without a hit, ``all_hit`` without a miss.
    ``picked`` are hits of one trial a task, ``nan`` where none was drawn. ``counted`` (2, L) are
    hits and trials without weights.
    """

    hits: Floats
    trials: Floats
    hh: Floats
    ht: Floats
    tt: Floats
    df: Floats
    cubes: Floats
    size: Floats
    all_hit: Floats
    all_missed: Floats
    tasks: Floats
    effective: Floats
    picked: Floats
    counted: Floats
    weighted: bool = False

    @property
    def estimate(self) -> Floats:
        """hits / trials; ``nan`` without a trial."""
        return np.asarray(self.hits / np.where(self.trials > 0, self.trials, np.nan))

    @property
    def one_each(self) -> Bools:
        """Which rates are tested on one trial of each task."""
        even = self.tasks <= _ABOUT_EVEN * self.effective
        several = (self.size > 1) & ~np.isnan(self.picked)
        return np.asarray(several & even & (self.tasks < FEW_TASKS))

    @property
    def misses(self) -> RateSums:
        """The rate of the other outcome."""
        hhh, hht, htt, ttt = self.cubes
        cubes = [ttt - 3 * htt + 3 * hht - hhh, ttt - 2 * htt + hht, ttt - htt, ttt]
        return replace(
            self,
            hits=self.trials - self.hits,
            hh=self.tt - 2 * self.ht + self.hh,
            ht=self.tt - self.ht,
            cubes=np.stack(cubes),
            all_hit=self.all_missed,
            all_missed=self.all_hit,
            picked=self.tasks - self.picked,
            counted=np.stack([self.counted[1] - self.counted[0], self.counted[1]]),
        )

    def variance(self, rate: ArrayLike) -> Floats:
        """Compute that of ``hits - rate * trials``, over draws of whole tasks within benchmarks."""
        at = np.asarray(rate, dtype=float)
        return np.maximum(self.hh - 2 * at * self.ht + at**2 * self.tt, 0)

    def third_moment(self, rate: ArrayLike) -> Floats:
        """Compute that of ``hits - rate * trials``."""
        at = np.asarray(rate, dtype=float)
        hhh, hht, htt, ttt = self.cubes
        return np.asarray(hhh - 3 * at * hht + 3 * at**2 * htt - at**3 * ttt)


def cluster_sums(
    hits: ArrayLike,
    trials: ArrayLike,
    task: ArrayLike,
    benchmark: ArrayLike,
    *,
    weights: Floats | None = None,
    seed: int = 0,
) -> TaskSums:
    """Sum columns hits | trials by task, of 0/1 arrays (N, L) with ``weights`` (N,). ``seed`` draws
    the trial of each task that a test on one of each takes."""
    h, n = np.asarray(hits, float), np.asarray(trials, float)
    if weights is None:
        order = np.random.default_rng(seed).random(len(n))[:, None]
        both = _numbered(benchmark) * (len(n) + 1) + _numbered(task)
        picked = _picked(h, n, order, np.unique(both, return_inverse=True)[1])
        whole = sum_clusters(np.concatenate([h, n], axis=1), task, benchmark)
        return TaskSums(whole.sums, whole.stratum_sizes, picked)
    each = (weights / weights.mean())[:, None]
    table = np.concatenate([h * each, n * each, n * each**2], axis=1)
    whole = sum_clusters(table, task, benchmark)
    width = h.shape[1]
    counted = np.concatenate([h.sum(axis=0), n.sum(axis=0)])
    sums, squares = whole.sums[:, : 2 * width], whole.sums[:, 2 * width :]
    return TaskSums(sums, whole.stratum_sizes, None, squares, counted)


def _numbered(labels: ArrayLike) -> Ints:
    return np.asarray(np.unique(np.asarray(labels), return_inverse=True)[1]).ravel()


def _picked(hits: Floats, trials: Floats, order: Floats, task: Ints) -> Floats:
    """Count the hits (L,) among the trials that come first of their task in ``order`` (N, 1)."""
    waiting = np.where(trials > 0, order, np.inf)
    first = np.full((int(task.max(initial=-1)) + 1, trials.shape[1]), np.inf)
    np.minimum.at(first, task, waiting)
    return np.asarray(((waiting == first[task]) * hits * (trials > 0)).sum(axis=0))


def rate_sums(clusters: TaskSums) -> RateSums:
    """Compute what the tests need of ``cluster_sums``. A benchmark of one task counts with its
    square, not with nothing: its spread is not known."""
    width = clusters.sums.shape[1] // 2
    squares, strata = np.zeros((3, width)), np.zeros(width)
    spread = np.zeros(width, dtype=bool)
    for part in np.split(clusters.sums, np.cumsum(clusters.stratum_sizes)[:-1]):
        m = len(part)
        centred = part - part.mean(axis=0) if m > 1 else part
        hits, trials = centred[:, :width], centred[:, width:]
        factor = m / (m - 1) if m > 1 else 1.0
        squares += factor * np.stack([hits**2, hits * trials, trials**2]).sum(axis=1)
        active = (part[:, width:] > 0).sum(axis=0)
        strata += active > 0
        spread |= active > 1
    total, (hh, ht, tt) = clusters.total, squares
    hits, trials = clusters.sums[:, :width], clusters.sums[:, width:]
    weighted = clusters.squares is not None
    within = (trials**2).sum(axis=0)
    effective = total[width:] ** 2 / np.where(within > 0, within, 1)
    several = trials > (0 if weighted else 1)
    counted = total if clusters.counted is None else clusters.counted
    nothing = np.full(width, np.nan)
    return RateSums(
        hits=total[:width],
        trials=total[width:],
        hh=hh,
        ht=ht,
        tt=tt,
        df=np.where(spread, np.maximum(effective - strata, 1.0), 0.0),
        cubes=_cubes(clusters.sums),
        size=within / np.maximum(total[width:], 1e-12),
        all_hit=(several & (trials - hits < 1e-9)).sum(axis=0).astype(float),
        all_missed=(several & (hits == 0)).sum(axis=0).astype(float),
        tasks=(trials > 0).sum(axis=0).astype(float),
        effective=effective,
        picked=nothing if clusters.picked is None else clusters.picked,
        counted=counted.reshape(2, width),
        weighted=weighted,
    )


def _cubes(sums: Floats) -> Floats:
    """Compute third moments (4, L) about the means of all tasks: within benchmarks of two tasks,
    where the mean lies in the middle, there would be none."""
    width = sums.shape[1] // 2
    centred = sums - sums.mean(axis=0) if len(sums) > 1 else sums
    hits, trials = centred[:, :width], centred[:, width:]
    both = hits * trials
    return np.asarray(np.stack([hits**3, hits * both, both * trials, trials**3]).sum(axis=1))


def p_values(rates: RateSums, bound: ArrayLike) -> Floats:
    """Compute one-sided p-values of "the rate is below ``bound``"; 1 where nothing was tried. They
    are (L,), or have the shape of a bound (..., L)."""
    at = np.broadcast_arrays(np.asarray(bound, dtype=float), rates.hits)[0]
    clustered = _cluster_p(rates, at)
    if rates.weighted:
        return clustered
    larger = np.maximum(binomial_p(rates.hits, rates.trials, at), clustered)
    picked = binomial_p(np.nan_to_num(rates.picked), rates.tasks, at)
    equal = rates.tasks <= (1 + 1e-9) * rates.effective
    picked = np.where(equal, picked, np.maximum(picked, clustered))
    return np.where(rates.one_each & (rates.df > 0), picked, larger)


def binomial_p(hits: Floats, trials: Floats, bound: ArrayLike) -> Floats:
    """Compute P[Binomial(trials, bound) >= hits], 1 where there is no hit."""
    some = hits > 0
    with np.errstate(invalid="ignore"):
        tail = scipy.special.betainc(
            np.where(some, hits, 1), np.maximum(trials - hits, 0) + 1, bound
        )
    return np.where(some, tail, 1.0)


def _cluster_p(rates: RateSums, at: Floats) -> Floats:
    tail = scipy.special.stdtr(np.where(rates.df > 0, rates.df, np.nan), -_corrected_t(rates, at))
    uneven = rates.tasks / np.maximum(_EVEN * rates.effective, 1e-12)
    tail = np.minimum(tail * np.maximum(uneven, 1.0) ** 3, 1.0)
    # Trials of different tasks are independent: the exact binomial says all there is to say.
    alone = (rates.size <= 1) & (rates.df > 0) & (not rates.weighted)
    return np.where(np.isnan(tail), 1.0, np.where(alone, 0.0, tail))


def _corrected_t(rates: RateSums, at: Floats) -> Floats:
    """Divide the excess of hits over the bound by its standard error, corrected for skewness."""
    share = _FAILED_TASK / (1 + rates.all_missed)
    # The share of a task that failed throughout; it vanishes where no task has two trials.
    beyond = 0.0 if rates.weighted else 1.0
    failed = -at * np.sqrt(rates.size * np.maximum(rates.size - beyond, 0))
    excess = rates.hits - at * rates.trials + share * failed
    variance = rates.variance(at) + share * failed**2
    third = rates.third_moment(at) + share * failed**3
    with np.errstate(divide="ignore", invalid="ignore"):
        t = excess / np.sqrt(variance)
        skewness = np.where(variance > 0, third / variance**1.5, 0.0)
    t = np.where(variance > 0, t, np.where(excess > 0, np.inf, -np.inf))
    t = np.clip(t, -_LARGEST_T, _LARGEST_T)
    skewness = np.clip(skewness, -_MOST_SKEWED, _MOST_SKEWED)
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


def lower_limits(rates: RateSums, level: ArrayLike) -> Floats:
    """Find the largest bound (L,) that ``p_values`` rejects at ``level``: the rate is at least that
    with confidence 1 - level; ``nan`` without a trial."""
    alpha = np.broadcast_to(np.asarray(level, dtype=float), rates.hits.shape)
    top = np.nan_to_num(rates.estimate)
    # With few tasks a small bound may pass where a larger one is rejected: look everywhere first.
    rejected = p_values(rates, top * np.arange(_GRID)[:, None] / _GRID) <= alpha
    last = np.where(rejected.any(axis=0), _GRID - 1 - rejected[::-1].argmax(axis=0), 0)
    low, high = top * last / _GRID, top * (last + 1) / _GRID
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        passed = p_values(rates, middle) <= alpha
        low, high = np.where(passed, middle, low), np.where(passed, high, middle)
    return np.where(rates.trials > 0, np.where(rejected.any(axis=0), low, 0.0), np.nan)


def upper_limits(rates: RateSums, level: ArrayLike) -> Floats:
    """Find the smallest bound (L,) above the rate with confidence 1 - level."""
    return np.asarray(1 - lower_limits(rates.misses, level))


def design_effects(rates: RateSums) -> Floats:
    """Compute how many times larger the variance is than that of independent trials, at least 1."""
    rate = np.nan_to_num(rates.estimate)
    independent = rates.counted[1] * rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = rates.variance(rate) / rates.trials**2 * rates.counted[1] ** 2 / independent
    return np.maximum(np.where(independent > 0, ratio, 1.0), 1.0)
