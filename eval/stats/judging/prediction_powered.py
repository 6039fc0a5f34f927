"""A success rate from many judge verdicts and few expert labels.

Source: PPI++ (Angelopoulos, Duchi and Zrnic 2023): the judge's mean over everything, corrected
by what the labelled part shows of its error, weighted by the ``power`` that minimises the
variance. Without tuning (power = 1) it can be wider than the labels alone. Variances are of
cluster sums, because trajectories of one task err together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, Ints, normal_quantile, t_quantile

TOO_FEW = "fewer than two labelled tasks: the judge's error cannot be estimated"
BIASED = "the judge's own rate: its error is not in the interval, which may miss the truth"


@dataclass(frozen=True, eq=False)
class PoweredRate:
    """The corrected rate beside its two rivals, each (1,).

    ``power`` in [0, 1] is the weight given to the judge; ``effective_labels`` is how many labels
    alone would be as precise; ``standard_error`` is that of the corrected rate.
    """

    powered: Interval
    expert_only: Interval
    judge_only: Interval
    power: float
    effective_labels: float
    standard_error: float


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
    """Rate of success over the population that both parts sample.

    ``labels`` and ``labelled_verdicts`` (n,), ``unlabelled_verdicts`` (N,) may be scores in
    [0, 1]. Tasks default to one per trajectory; label whole tasks, drawn at random.
    """
    y, f, g = (_finite(part) for part in (labels, labelled_verdicts, unlabelled_verdicts))
    if len(y) != len(f):
        raise ValueError(f"{len(y)} labels for {len(f)} labelled verdicts")
    here = _codes(labelled_tasks, len(y))
    there = _codes(unlabelled_tasks, len(g))
    tasks = int(here.max(initial=-1)) + 1
    both, where = np.r_[f, g], np.r_[here, there + tasks]
    judge = _mean_interval(both, where, confidence, (BIASED,))
    expert = _mean_interval(y, here, confidence, ())
    if tasks < 2:
        nothing = np.full(1, np.nan)
        undefined = Interval(expert.estimate, nothing, nothing, confidence, (TOO_FEW,))
        return PoweredRate(undefined, undefined, judge, np.nan, np.nan, np.nan)
    chosen = _power(y, f, g, here, there) if power is None else power
    spare = _covariance(g, g, there)
    variance = _covariance(y - chosen * f, y - chosen * f, here) + chosen**2 * spare
    correction = y.mean() - chosen * f.mean()
    estimate = np.array([correction + (chosen * g.mean() if len(g) else 0.0)])
    half = t_quantile(confidence, tasks - 1) * np.sqrt(variance)
    alone = _covariance(y, y, here)
    gained = len(y) * alone / variance if variance > 0 else float(len(y))
    powered = Interval(estimate, estimate - half, estimate + half, confidence)
    return PoweredRate(powered, expert, judge, float(chosen), float(gained), float(variance**0.5))


def stratified_rate(
    strata: Sequence[PoweredRate], shares: ArrayLike, confidence: float = 0.95
) -> Interval:
    """The rate over strata (benchmarks) with known ``shares`` of the population, (1,).

    Every stratum keeps its own power, since judges err differently by benchmark (stratified PPI,
    Fisch et al. 2024). Undefined where any stratum is.
    """
    weights = np.asarray(shares, dtype=float)
    if len(weights) != len(strata) or not np.isclose(weights.sum(), 1):
        raise ValueError("every stratum needs its share, and the shares must add up to 1")
    estimate = weights @ np.stack([each.powered.estimate for each in strata])
    error = np.sqrt(weights**2 @ np.array([each.standard_error**2 for each in strata]))
    half = normal_quantile(confidence) * error
    notes = tuple(dict.fromkeys(note for each in strata for note in each.powered.notes))
    return Interval(estimate, estimate - half, estimate + half, confidence, notes)


def _power(y: Floats, f: Floats, g: Floats, here: Ints, there: Ints) -> float:
    """The weight of least variance, kept within [0, 1]; 0 where the judge never varies."""
    if len(np.unique(there)) < 2:
        return 0.0
    spread = _covariance(f, f, here) + _covariance(g, g, there)
    return float(np.clip(_covariance(y, f, here) / spread, 0, 1)) if spread > 0 else 0.0


def _covariance(x: Floats, y: Floats, tasks: Ints) -> float:
    """Covariance of the two sample means, from sums over tasks; 0 with fewer than two tasks."""
    if not len(x):
        return 0.0
    sums = [np.bincount(tasks, part - part.mean()) for part in (x, y)]
    m = len(sums[0])
    return float(m / (m - 1) * (sums[0] @ sums[1]) / len(x) ** 2) if m > 1 else 0.0


def _mean_interval(
    values: Floats, tasks: Ints, confidence: float, notes: tuple[str, ...]
) -> Interval:
    m = len(np.unique(tasks))
    mean = np.array([values.mean() if len(values) else np.nan])
    half = t_quantile(confidence, m - 1) * _covariance(values, values, tasks) ** 0.5
    return Interval(mean, mean - half, mean + half, confidence, notes)


def _codes(tasks: ArrayLike | None, n: int) -> Ints:
    if tasks is None:
        return np.arange(n)
    codes = np.unique(np.asarray(tasks), return_inverse=True)[1].ravel()
    if len(codes) != n:
        raise ValueError(f"{len(codes)} task names for {n} verdicts")
    return codes


def _finite(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError("labels and verdicts must be numbers: settle missing values first")
    return array
