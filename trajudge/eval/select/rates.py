"""Is a rate above a bound? Tests and one-sided limits of L rates at once, on clustered trials.

A rate is hits / trials: of what a candidate accepts, how much succeeded. Trajectories of one task
succeed together, so tasks are clusters within benchmarks (strata). What is tested is the rate over
trials: a task counts by its number of them. Which test is taken depends on numbers of trials
alone, which show no label (``python -m benchmarks.select_errors`` measures all):

- Where no task has two trials, the exact binomial.
- Elsewhere the largest of three p-values. The exact binomial. A cluster-robust t, right where
  trials of one task agree (Statistical Precipice, section 2.2; Cochran 1977, sections 6 and 9).
  And the chance that tasks which fail throughout exist but none was drawn: a world at the bound
  that is otherwise like the sample shows none of them with probability (bound / rate) ^ tasks, so
  no valid test rejects more often. Tasks are counted effectively (Kish 1965) there.
- Below ``FEW_TASKS`` tasks that test has little power, and a second one is taken: the exact
  binomial on one trial of each task, drawn at random. It is exact where all tasks have equally many
  trials, and is taken alone there. Elsewhere it tests the mean over tasks, which is above that over
  trials where small tasks succeed more often than large ones: the t has to pass at a level of 1.25
  times alpha, too, and either test may reject.

The plain t errs too often: near a high bound the few tasks that fail throughout carry most of the
variance, and where none of them was drawn the rate looks both higher and more certain than it is.
Four things keep it to its level: t is corrected for skewness (Hall 1992, On the removal of skewness
by transformation); as half a count is added to a proportion, a third of a task that failed
throughout is added, the less the more such tasks were drawn; the degrees of freedom are those of
the effective number of tasks; and where the numbers of trials are uneven the p-value is multiplied
by the cube of the number of tasks over 1.25 times the effective one.

Weighted trials (labels drawn with unequal probabilities) have the t of their weighted sums by task
alone, to which a third of a failed task of the average weight is added.

Candidates are corrected for how many were tried: the chance that any is let through although its
rate is below the bound is at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from trajudge.stats.intervals import (
    Bools,
    Clusters,
    Floats,
    Ints,
    sum_clusters,
)

FEW_TASKS = 20
_EVEN = 1.25  # tasks over the effective number of them
# By how much the t of few uneven tasks may miss its level where one trial of each passes, too.
_LENIENT = 1.25
DOMINANT = 0.5
"""The largest share of what a judge accepts that may be of one task."""
_GRID = 64
_BISECTIONS = 40
# Chosen by the simulation: the smallest that keep the test to its level on the whole grid.
_FAILED_TASK = 1 / 3
_MOST_SKEWED = 0.5
_LARGEST_T = 50.0
_MOST_LABELS = 20_000


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
    def all_hits(self) -> RateSums:
        """The rates were every trial a hit: a test that does not reject then never does."""
        ttt = self.cubes[3]
        return replace(
            self,
            hits=self.trials,
            hh=self.tt,
            ht=self.tt,
            cubes=np.stack([ttt, ttt, ttt, ttt]),
            all_hit=self.all_hit + self.all_missed,
            all_missed=np.zeros_like(self.all_missed),
            picked=np.where(np.isnan(self.picked), np.nan, self.tasks),
            counted=np.stack([self.counted[1], self.counted[1]]),
        )

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
    p = np.maximum(binomial_p(rates.hits, rates.trials, at), clustered)
    p = np.maximum(p, _unseen_failures_p(rates, at))
    one_each = binomial_p(np.nan_to_num(rates.picked), rates.tasks, at)
    is_equal = rates.tasks <= (1 + 1e-9) * rates.effective
    uneven = np.minimum(p, np.maximum(one_each, clustered / _LENIENT))
    is_few = (rates.size > 1) & ~np.isnan(rates.picked) & (rates.tasks < FEW_TASKS)
    return np.where(is_few & (rates.df > 0), np.where(is_equal, one_each, uneven), p)


def _unseen_failures_p(rates: RateSums, at: Floats) -> Floats:
    """Compute the chance that tasks which fail throughout, as many as bring the rate down to the
    bound, are all absent from the sample; 0 where no task has two trials."""
    drawn = np.minimum(at / np.where(rates.hits > 0, rates.estimate, 1.0), 1.0)
    return np.where(rates.size > 1, drawn**rates.effective, 0.0)


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


def labels_needed(
    target: float, truth: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Find the smallest number of independent labels that shows, with probability ``power``, on
    which side of ``target`` a true rate ``truth`` lies, one-sided at ``alpha``.

    None where the two are too close for any number within reason. Multiply by the design effect
    where several trajectories of a task are labelled.
    """
    if truth < target:
        return labels_needed(1 - target, 1 - truth, alpha=alpha, power=power)
    largest = _about(target, truth, alpha, power)
    if largest is None:
        return None
    n = np.arange(1, largest + 1)
    # The fewest hits among n that reject the target, less one.
    critical = np.ceil(scipy.special.bdtrik(1 - alpha, n, target)).clip(0, n)
    critical -= (critical > 0) & (_more_hits(critical - 1, n, target) <= alpha)
    critical += _more_hits(critical, n, target) > alpha
    reached = _more_hits(critical, n, truth) >= power
    return int(n[reached.argmax()]) if reached.any() else None


def task_labels_needed(rates: RateSums, index: int, target: float, alpha: float) -> int | None:
    """Find about how many labels in all would show on which side of ``target`` a rate lies, were
    its estimate true and further tasks like those at hand; None where no number does."""
    estimate = float(rates.estimate[index])
    needed = None if math.isnan(estimate) else labels_needed(target, estimate, alpha=alpha)
    return None if needed is None else math.ceil(needed * float(design_effects(rates)[index]))


def _more_hits(hits: Floats, trials: Ints, rate: float) -> Floats:
    """Compute P[Binomial(trials, rate) > hits]."""
    tail = scipy.special.betainc(hits + 1, np.maximum(trials - hits, 1e-9), rate)
    return np.where(hits >= trials, 0.0, tail)


def _about(target: float, truth: float, alpha: float, power: float) -> int | None:
    """Take twice the normal approximation, and enough for a truth of 1."""
    if not truth > target:
        return None
    spread = -scipy.special.ndtri(alpha) * math.sqrt(target * (1 - target))
    spread += max(scipy.special.ndtri(power), 0.0) * math.sqrt(truth * (1 - truth))
    n = 2 * (spread / (truth - target)) ** 2 + 3 * math.log(alpha) / math.log(target) + 50
    return math.ceil(n) if n <= _MOST_LABELS else None
