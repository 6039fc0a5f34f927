"""A success rate from many judge verdicts and few expert labels.

Source: PPI++ (Angelopoulos, Duchi and Zrnic 2023): the judge's mean over everything, corrected
by what the labelled part shows of its error, weighted by the ``power`` that minimises the
variance. Without tuning (power = 1) it can be wider than the labels alone. Variances are of
sums over tasks, because trajectories of one task err together; a task that is labelled in part
counts in both parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, Ints, t_quantile
from trajudge.eval.stats.intervals.clustered_rates import PRIOR_CLUSTERS, rates_by_cluster

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
    """The corrected rate beside its two rivals, each (1,), and the number of labelled ``tasks``.

    ``power`` in [0, 1] is the weight given to the judge; ``effective_labels`` is how many labels
    alone would be as precise; ``standard_error`` is that of the corrected rate, ``variance`` its
    square before ``UNSEEN_TASKS`` bounds it.
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
    """Estimate the rate of success over the population that both parts sample.

    ``labels`` and ``labelled_verdicts`` (n,), ``unlabelled_verdicts`` (N,) may be scores in
    [0, 1]. Tasks default to one per trajectory; label whole tasks, drawn at random. The variance
    counts ``PRIOR_CLUSTERS`` tasks more on which the judge is wrong throughout, and at least
    ``UNSEEN_TASKS``: few labels that show no error do not prove that there is none.
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

    Every stratum keeps its own power, since judges err differently by benchmark (stratified PPI,
    Fisch et al. 2024). Errors that no label shows may all lie in the stratum where a task weighs
    most, but not that many in each. Undefined where any stratum is.
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
    """Return how many times larger the variance of ``stratified_rate`` is from the ``labelled``
    (H,) trajectories of the strata alone; ``nan`` where any stratum is undefined."""
    parts = np.asarray(shares, dtype=float) ** 2
    parts = parts * np.array([each.standard_error**2 for each in strata])
    effective = np.array([each.effective_labels for each in strata])
    if np.isnan(effective).any():
        return float("nan")
    return float((parts * effective / np.asarray(labelled)).sum() / parts.sum())


def _unseen(tasks: int) -> float:
    return UNSEEN_TASKS / tasks**2


def _unseen_in(strata: Sequence[PoweredRate], weights: Floats) -> float:
    """Return the least variance over strata; ``nan`` where any is undefined."""
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
        """Of the corrected mean ``y - power f + power g``."""
        slope = self.yg - self.yf
        square = self.ff + self.gg - 2 * self.fg
        return max(self.yy + 2 * power * slope + power**2 * square, 0.0)

    def best_power(self) -> float:
        """Find the weight of least variance, clipped to [0, 1]; 0 where the judge never varies."""
        square = self.ff + self.gg - 2 * self.fg
        if self.unlabelled_tasks < 2 or not square > 0:
            return 0.0
        return float(np.clip((self.yf - self.yg) / square, 0, 1))


def _of_others(f: Floats, g: Floats, here: Ints, there: Ints) -> float:
    """Variance of the mean of the other verdicts; of few tasks at least what as many of all the
    verdicts have, as the source takes it: few that happen to agree would get all the weight."""
    own = _covariance(g, there, g, there)
    if not len(g) or len(np.unique(there)) >= ENOUGH_TASKS:
        return own
    every, tasks = np.r_[f, g], np.r_[here, there]
    return max(own, _covariance(every, tasks, every, tasks) * len(every) / len(g))


def _covariance(x: Floats, x_tasks: Ints, y: Floats, y_tasks: Ints) -> float:
    """Covariance of two sample means, from sums over the tasks of both; 0 with fewer than two."""
    if not len(x) or not len(y):
        return 0.0
    size = int(max(x_tasks.max(), y_tasks.max())) + 1
    sums = [
        np.bincount(tasks, part - part.mean(), size) for part, tasks in ((x, x_tasks), (y, y_tasks))
    ]
    m = len(np.intersect1d(x_tasks, y_tasks))
    return float(m / (m - 1) * (sums[0] @ sums[1]) / len(x) / len(y)) if m > 1 else 0.0


def _only(values: Floats, tasks: Ints, confidence: float, notes: tuple[str, ...]) -> Interval:
    """Estimate the mean from ``values`` alone, with its interval over tasks."""
    interval = rates_by_cluster(values, np.ones(()), tasks, confidence=confidence).interval
    return Interval(
        interval.estimate, interval.low, interval.high, confidence, (*notes, *interval.notes)
    )


def _codes(
    labelled: ArrayLike | None, n: int, unlabelled: ArrayLike | None, more: int
) -> tuple[Ints, Ints]:
    """Give every task a number, the same in both parts; by default each trajectory is a task."""
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
