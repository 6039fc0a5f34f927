"""Comparison of judges: McNemar's test by task, the probability of improvement, Holm's
correction, success rates from many verdicts and few labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trajudge.stats.intervals import (
    PRIOR_CLUSTERS,
    Bools,
    Floats,
    Interval,
    Ints,
    between_clusters,
    rates_by_cluster,
    t_quantile,
)

_COUNTED = 4_000  # sums up to which all ways are counted: beyond, a transform takes less time

_ROUNDING = 1e-12


def mcnemar_by_task(first_right: ArrayLike, second_right: ArrayLike, tasks: TaskRuns) -> float:
    """Compute the exact two-sided p-value of "both are right equally often" from who was right
    (N,).

    The two judges are swapped in whole tasks, both ways equally likely (Fisher's randomization of
    signs, 1935), because errors of runs of one task are dependent: with one run per task it is
    McNemar's exact test.
    """
    gaps = tasks.sums(np.asarray(first_right, np.int64) - np.asarray(second_right, np.int64))
    sizes, counts = np.unique(np.abs(gaps[gaps != 0]), return_counts=True)
    if len(sizes) < 2:  # a sign test
        above, below = int((gaps > 0).sum()), int((gaps < 0).sum())
        return min(1.0, 2 * float(_coin_tosses(above + below)[: min(above, below) + 1].sum()))
    total = int((sizes * counts).sum())
    if total > _COUNTED:
        return _transformed(sizes, counts, abs(int(gaps.sum())), total)
    chances = np.ones(1)  # of every sum that swapping gives, from the least to the largest
    for size, count in zip(sizes, counts, strict=True):
        of_size = np.zeros(2 * size * count + 1)
        of_size[:: 2 * size] = _coin_tosses(int(count))
        chances = np.convolve(chances, of_size)
    sums = np.abs(np.arange(-total, total + 1))
    return min(1.0, float(chances[sums >= abs(gaps.sum())].sum()))


def _transformed(sizes: Ints, counts: Ints, least: int, total: int) -> float:
    """Return the probability of a sum of at least ``least`` in either direction, by the inverse
    Fourier transform of its characteristic function, Π cos(size t) ^ count: exact up to
    rounding, ``_ROUNDING``."""
    length = 1 << (2 * total + 1).bit_length()
    at = 2 * np.pi * np.arange(length // 2 + 1) / length
    wave = np.ones(len(at))
    for size, count in zip(sizes, counts, strict=True):
        wave *= np.cos(size * at) ** count
    chances = np.fft.irfft(wave, length)[: total + 1]  # of the sums 0 to total, alike below 0
    tail = 2 * chances[max(least, 1) :].sum() + (chances[0] if least == 0 else 0.0)
    return float(np.clip(tail, _ROUNDING, 1.0))


def _coin_tosses(n: int) -> Floats:
    """Return the probabilities of 0 to n heads (n + 1,)."""
    logs = np.cumsum(np.log(np.maximum(np.arange(n + 1), 1)))  # of the factorials
    return np.asarray(np.exp(logs[-1] - logs - logs[::-1] - n * np.log(2)))


@dataclass(frozen=True, eq=False)
class TaskRuns:
    """The assignment of N runs to C tasks: their indices by task (N,), the number of ``runs``
    per task (C,), and the ``sizes`` of the strata, in tasks."""

    order: Ints
    runs: Ints
    sizes: Ints

    @classmethod
    def of(cls, cluster: ArrayLike, stratum: ArrayLike | None = None) -> TaskRuns:
        """``cluster`` (N,) names the task within its ``stratum`` (N,)."""
        names = np.asarray(cluster)
        strata = np.zeros(len(names), dtype=int) if stratum is None else np.asarray(stratum)
        both = [np.unique(part, return_inverse=True)[1] for part in (strata, names)]
        order = np.lexsort((both[1], both[0]))
        where, name = (part[order] for part in both)
        starts = np.flatnonzero(np.r_[True, (np.diff(where) != 0) | (np.diff(name) != 0)])
        return cls(order, np.diff(np.r_[starts, len(order)]), np.bincount(where[starts]))

    def sums(self, values: Ints) -> Ints:
        """Sum ``values`` (N,) over each task (C,)."""
        return np.asarray(np.add.reduceat(values[self.order], np.cumsum(self.runs) - self.runs))


def improvement(first: Bools, second: Bools, tasks: TaskRuns, confidence: float = 0.95) -> Interval:
    """Compute P(X > Y), shape (...): the mean over ``tasks`` of the probability that a run of
    ``first`` (..., N) is right and one of ``second`` (..., N) is not, a tie counting half
    (Statistical Precipice, section 6.2; Agarwal et al. 2021).

    The units of the interval are tasks, with Student's quantile; undefined below two tasks.
    """
    difference = first[..., tasks.order].astype(float) - second[..., tasks.order]
    starts = np.cumsum(tasks.runs) - tasks.runs
    # Pairs of runs of one task that the first wins less those that it loses, as a share.
    margin = np.add.reduceat(difference, starts, axis=-1) / tasks.runs
    wins = (1 + margin) / 2
    mean, count = wins.mean(axis=-1), len(starts)
    half = np.sqrt(between_clusters(wins - mean[..., None], tasks.sizes)) / count
    half = half * t_quantile(confidence, float(count - len(tasks.sizes)))
    return Interval(mean, np.maximum(mean - half, 0), np.minimum(mean + half, 1), confidence)


def holm(p_values: ArrayLike) -> Floats:
    """Return step-down adjusted p-values (Holm 1979), same shape; ``nan`` (no test) is kept."""
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1)
    return adjusted


_DRAWS = 9_999

# The ways to part four draws into two pairs; the first is that of the times.
_PARTS = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))


@dataclass(frozen=True)
class ExchangeTest:
    """``between``: how often draws of different times differ; ``within``: draws of the same
    time; ``p_value`` of "the times are exchangeable", one-sided."""

    between: float
    within: float
    p_value: float


def exchange_test(
    then: ArrayLike, now: ArrayLike, cluster: ArrayLike, rng: np.random.Generator
) -> ExchangeTest:
    """Compare two draws at one time with two at another, ``then`` and ``now`` (N, 2) as 0 or 1, of
    N items in the tasks that ``cluster`` (N,) numbers from 0.

    Under the null, each of the three ways to divide the four draws of a task into pairs is as
    likely as that of the times: a permutation test, exact for any noise of the items and any
    dependence between items of one task.
    """
    four = np.concatenate([np.asarray(then, float), np.asarray(now, float)], axis=1)
    if not len(four):
        return ExchangeTest(float("nan"), float("nan"), 1.0)
    within = np.stack([_within(four, parts) for parts in _PARTS], axis=1)
    every = sum(np.abs(four[:, a] - four[:, b]) for a in range(4) for b in range(a))
    between = (np.asarray(every)[:, None] - 2 * within) / 4
    numbers = np.asarray(cluster, np.int64)
    gaps = np.zeros((int(numbers.max()) + 1, 3))
    np.add.at(gaps, numbers, between - within)
    # Where all three ways are alike, as where all draws agree, a task decides nothing.
    gaps = gaps[np.ptp(gaps, axis=1) > 1e-12]
    picked = rng.integers(3, size=(_DRAWS, len(gaps)), dtype=np.int8)
    sums = gaps[np.arange(len(gaps)), picked].sum(axis=1)
    at_least = int((sums >= gaps[:, 0].sum() - 1e-9).sum())
    return ExchangeTest(
        float(between[:, 0].mean()), float(within[:, 0].mean()), (1 + at_least) / (1 + _DRAWS)
    )


def _within(four: Floats, parts: tuple[tuple[int, int], tuple[int, int]]) -> Floats:
    """Return how much the two draws of each pair differ (N,), averaged over both pairs."""
    differ = [np.abs(four[:, a] - four[:, b]) for a, b in parts]
    return np.asarray((differ[0] + differ[1]) / 2)


# The least variance is that of a sum over labelled tasks in which the judge is wrong throughout in
# so many: labels that show no error leave nearly as much of it possible (the exact interval's
# upper limit), and without it 86 % of the intervals cover where labels are often all alike.
UNSEEN_TASKS = 2.5

TOO_FEW = "fewer than two labelled tasks: the judge's error cannot be estimated"

ENOUGH_TASKS = 30

"""How many unlabelled tasks tell by themselves how much the judge varies on them."""

BIASED = "the judge's own rate: its error is not in the interval, which may miss the truth"


@dataclass(frozen=True, eq=False)
class PoweredRate:
    """The corrected rate and its two alternatives, each (1,), and the number of labelled ``tasks``.

    ``power`` in [0, 1] is the weight of the judge; ``effective_labels`` is the number of labels
    with the same precision without the judge; ``standard_error`` is that of the corrected rate,
    ``variance`` its square before the bound of ``UNSEEN_TASKS``.
    """

    powered: Interval
    expert_only: Interval
    judge_only: Interval
    tasks: int
    power: float
    effective_labels: float
    standard_error: float
    variance: float


def powered_rate(
    labels: ArrayLike,
    labelled_verdicts: ArrayLike,
    unlabelled_verdicts: ArrayLike,
    *,
    labelled_tasks: ArrayLike | None = None,
    unlabelled_tasks: ArrayLike | None = None,
    power: float | None = None,
    confidence: float = 0.95,
) -> PoweredRate:
    """Estimate the rate of success in the population from which both parts are samples.

    ``labels`` and ``labelled_verdicts`` (n,), ``unlabelled_verdicts`` (N,) may be scores in [0, 1].
    By default each trajectory is a task; label whole tasks, drawn at random. The variance includes
    ``PRIOR_CLUSTERS`` additional tasks on which the judge is always wrong, and is at least that of
    ``UNSEEN_TASKS``: a few labels without an error do not prove that there is none.
    """
    y, f, g = (_finite(part) for part in (labels, labelled_verdicts, unlabelled_verdicts))
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels for {len(f)} labelled verdicts")
    here, there = _codes(labelled_tasks, len(y), unlabelled_tasks, len(g))
    tasks = len(np.unique(here))
    judge = _only(np.r_[f, g], np.r_[here, there], confidence, (BIASED,))
    expert = _only(y, here, confidence, ())
    if tasks < 2:
        nothing = np.full(1, np.nan)
        undefined = Interval(expert.estimate, nothing, nothing, confidence, (TOO_FEW,))
        return PoweredRate(undefined, undefined, judge, tasks, *[np.nan] * 4)
    moments = _Moments.of(y, f, g, here, there)
    chosen = moments.best_power() if power is None else power
    prior = PRIOR_CLUSTERS / tasks**2
    variance, unseen = moments.variance(chosen) + prior, _unseen(tasks)
    error = max(variance, unseen) ** 0.5
    correction = y.mean() - chosen * f.mean()
    estimate = np.array([correction + (chosen * g.mean() if len(g) else 0.0)])
    half = t_quantile(confidence, tasks - 1) * error
    low, high = (np.clip(end, 0.0, 1.0) for end in (estimate - half, estimate + half))
    gained = len(y) * max(moments.yy + prior, unseen) / error**2
    powered = Interval(np.clip(estimate, 0.0, 1.0), low, high, confidence)
    return PoweredRate(powered, expert, judge, tasks, float(chosen), gained, error, variance)


def stratified_rate(
    strata: Sequence[PoweredRate], shares: ArrayLike, confidence: float = 0.95
) -> Interval:
    """Estimate the rate over strata (benchmarks) with known ``shares`` of the population, (1,).

    Every stratum has its own power, because judges' errors differ by benchmark (stratified PPI,
    Fisch et al. 2024). Unobserved errors may all be in the stratum whose tasks have the largest
    weight, but not that many in each. Undefined if any stratum is.
    """
    weights = np.asarray(shares, dtype=float)
    if len(weights) != len(strata) or not np.isclose(weights.sum(), 1):
        raise ValueError("every stratum needs its share, and the shares must add up to 1")
    estimate = weights @ np.stack([each.powered.estimate for each in strata])
    parts = weights**2 * np.array([each.standard_error**2 for each in strata])
    # Satterthwaite's degrees of freedom, from those of the strata.
    freedom = np.array([each.tasks - 1.0 for each in strata])
    with np.errstate(divide="ignore", invalid="ignore"):
        df = parts.sum() ** 2 / (parts**2 / freedom).sum()
    variance = (weights**2 * np.array([each.variance for each in strata])).sum()
    half = t_quantile(confidence, df) * np.sqrt(max(variance, _unseen_in(strata, weights)))
    low, high = (np.clip(end, 0.0, 1.0) for end in (estimate - half, estimate + half))
    notes = tuple(dict.fromkeys(note for each in strata for note in each.powered.notes))
    return Interval(estimate, low, high, confidence, notes)


def gain_over_labels(
    strata: Sequence[PoweredRate], shares: ArrayLike, labelled: ArrayLike
) -> float:
    """Return how many times larger the variance of ``stratified_rate`` is with only the
    ``labelled`` (H,) trajectories of the strata; ``nan`` if any stratum is undefined."""
    parts = np.asarray(shares, dtype=float) ** 2
    parts = parts * np.array([each.standard_error**2 for each in strata])
    effective = np.array([each.effective_labels for each in strata])
    if np.isnan(effective).any():
        return float("nan")
    return float((parts * effective / np.asarray(labelled)).sum() / parts.sum())


def _unseen(tasks: int) -> float:
    return UNSEEN_TASKS / tasks**2


def _unseen_in(strata: Sequence[PoweredRate], weights: Floats) -> float:
    """Return the minimum variance over strata; ``nan`` if any is undefined."""
    least = [_unseen(each.tasks) if each.tasks > 1 else np.nan for each in strata]
    return float((weights**2 * np.array(least)).max())


@dataclass(frozen=True)
class _Moments:
    """Variances and covariances of the means of labels ``y``, verdicts on them ``f`` and the other
    verdicts ``g``."""

    yy: float
    yf: float
    ff: float
    gg: float
    yg: float
    fg: float
    unlabelled_tasks: int

    @classmethod
    def of(cls, y: Floats, f: Floats, g: Floats, here: Ints, there: Ints) -> _Moments:
        return cls(
            yy=_covariance(y, here, y, here),
            yf=_covariance(y, here, f, here),
            ff=_covariance(f, here, f, here),
            gg=_of_others(f, g, here, there),
            yg=_covariance(y, here, g, there),
            fg=_covariance(f, here, g, there),
            unlabelled_tasks=len(np.unique(there)),
        )

    def variance(self, power: float) -> float:
        """Return the variance of the corrected mean ``y - power f + power g``."""
        slope = self.yg - self.yf
        square = self.ff + self.gg - 2 * self.fg
        return max(self.yy + 2 * power * slope + power**2 * square, 0.0)

    def best_power(self) -> float:
        """Return the weight with the smallest variance, clipped to [0, 1]; 0 if the judge never
        varies."""
        square = self.ff + self.gg - 2 * self.fg
        if self.unlabelled_tasks < 2 or not square > 0:
            return 0.0
        return float(np.clip((self.yf - self.yg) / square, 0, 1))


def _of_others(f: Floats, g: Floats, here: Ints, there: Ints) -> float:
    """Return the variance of the mean of the other verdicts; for few tasks at least that of as
    many tasks of all verdicts, as in the source: otherwise a few that agree by chance would get
    all the weight."""
    own = _covariance(g, there, g, there)
    if not len(g) or len(np.unique(there)) >= ENOUGH_TASKS:
        return own
    every, tasks = np.r_[f, g], np.r_[here, there]
    return max(own, _covariance(every, tasks, every, tasks) * len(every) / len(g))


def _covariance(x: Floats, x_tasks: Ints, y: Floats, y_tasks: Ints) -> float:
    """Return the covariance of two sample means, from sums over the tasks of both; 0 with fewer
    than two."""
    if not len(x) or not len(y):
        return 0.0
    size = int(max(x_tasks.max(), y_tasks.max())) + 1
    sums = [
        np.bincount(tasks, part - part.mean(), size) for part, tasks in ((x, x_tasks), (y, y_tasks))
    ]
    m = len(np.intersect1d(x_tasks, y_tasks))
    return float(m / (m - 1) * (sums[0] @ sums[1]) / len(x) / len(y)) if m > 1 else 0.0


def _only(values: Floats, tasks: Ints, confidence: float, notes: tuple[str, ...]) -> Interval:
    """Estimate the mean of ``values``, with its interval over tasks."""
    interval = rates_by_cluster(values, np.ones(()), tasks, confidence=confidence).interval
    return Interval(
        interval.estimate, interval.low, interval.high, confidence, (*notes, *interval.notes)
    )


def _codes(
    labelled: ArrayLike | None, n: int, unlabelled: ArrayLike | None, more: int
) -> tuple[Ints, Ints]:
    """Return the index of every task, the same in both parts; by default each trajectory is a
    task."""
    for tasks, size in ((labelled, n), (unlabelled, more)):
        if tasks is not None and len(np.asarray(tasks)) != size:
            raise ValueError(f"{len(np.asarray(tasks))} task names for {size} verdicts")
    if labelled is not None and unlabelled is not None:
        names = np.concatenate([np.asarray(labelled), np.asarray(unlabelled)])
        codes = np.unique(names, return_inverse=True)[1].ravel()
        return codes[:n], codes[n:]
    here, there = (
        np.arange(size) if tasks is None else np.unique(tasks, return_inverse=True)[1].ravel()
        for tasks, size in ((labelled, n), (unlabelled, more))
    )
    return here, there + n


def _finite(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError("labels and verdicts must be numbers: settle missing values first")
    return array
