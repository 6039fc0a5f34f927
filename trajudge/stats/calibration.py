"""Maps from a judge's scores to probabilities, and the reliability of scores by bin.

Isotonic regression (Zadrozny and Elkan 2002; pool adjacent violators, linear between the observed
scores) and Platt's sigmoid with his smoothed targets (Platt 1999), of the scores or of their
log-odds: the latter keeps scores that are already probabilities. For verdicts alone, the share of
successes among the accepted and among the rejected, with half a success and half a failure added
(Jeffreys). Fit on development trajectories and evaluate on others: a map always looks calibrated on
its own data. The expected calibration error over equal bins (Guo et al. 2017) is biased upwards;
use the intervals of the bins, with tasks as units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from trajudge.stats.intervals import Floats, Interval, Ints, rates_by_cluster

Method = Literal["isotonic", "platt", "log-odds", "verdict"]

BINS = 10

_CERTAIN = 0.01  # scores nearer to 0 or 1 count as this near: a certain one has no log-odds

_STEPS = 100


@dataclass(frozen=True)
class FittedMap:
    """A map from scores to probabilities. Isotonic: ``scores`` ascending with their ``values``;
    Platt: 1 / (1 + exp(-(slope * score + intercept))), or the same of the scores' log-odds. For
    verdicts the scores are 0 and 1."""

    method: Method
    scores: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    slope: float = 0.0
    intercept: float = 0.0

    def __call__(self, scores: ArrayLike) -> Floats:
        """Return probabilities of the same shape; beyond the observed scores that of the nearest
        one (isotonic)."""
        values = np.asarray(scores, dtype=float)
        if self.method in ("platt", "log-odds"):
            values = values if self.method == "platt" else _log_odds(values)
            return np.asarray(1 / (1 + np.exp(-(self.slope * values + self.intercept))))
        return np.asarray(np.interp(values, self.scores, self.values))


@dataclass(frozen=True, eq=False)
class Reliability:
    """For every bin with a trajectory (K,): its ends, the numbers of trajectories and of tasks,
    the mean score, and the share of successes with its interval; the error over all bins.
    ``accepted`` counts those that the judge's own verdict accepts, if known."""

    low: Floats
    high: Floats
    n: Ints
    tasks: Ints
    mean_score: Floats
    rate: Interval
    calibration_error: float
    brier: float
    accepted: Ints | None = None


def fit_calibration(
    scores: ArrayLike, truth: ArrayLike, method: Method, weights: Floats | None = None
) -> FittedMap:
    """Fit the map from scores (N,) in [0, 1] to outcomes (N,); ``weights`` (N,) are scaled to a
    mean of 1.

    Raises ValueError unless both outcomes occur.
    """
    x, y = np.asarray(scores, dtype=float), np.asarray(truth, dtype=bool)
    if y.all() or not y.any():
        raise ValueError("a calibration needs successes and failures")
    w = np.ones(len(x)) if weights is None else weights / weights.mean()
    if method in ("platt", "log-odds"):
        slope, intercept = _platt(x if method == "platt" else _log_odds(x), y, w)
        return FittedMap(method, slope=slope, intercept=intercept)
    if method == "verdict":
        return _of_verdicts(x, y, w)
    levels, index = np.unique(x, return_inverse=True)
    counts = np.bincount(index, w)
    fitted = isotonic_regression(np.bincount(index, y * w) / counts, weights=counts).x
    return FittedMap(method, tuple(levels.tolist()), tuple(fitted.tolist()))


def closer_sigmoid(scores: ArrayLike, truth: ArrayLike, weights: Floats | None = None) -> Method:
    """Return the sigmoid with the smaller cross-entropy on scores (N,) and outcomes (N,); both
    have as many parameters. Raises ValueError unless both outcomes occur."""
    x, y = np.asarray(scores, dtype=float), np.asarray(truth, dtype=bool)
    w = np.ones(len(x)) if weights is None else weights
    plain, odds = (fit_calibration(x, y, each, weights)(x) for each in ("platt", "log-odds"))
    return "platt" if _cross_entropy(plain, y, w) <= _cross_entropy(odds, y, w) else "log-odds"


def _cross_entropy(p: Floats, y: np.ndarray, w: Floats) -> float:
    return float(-w @ np.log(np.clip(np.where(y, p, 1 - p), 1e-12, 1)))


def _log_odds(x: Floats) -> Floats:
    inside = np.clip(x, _CERTAIN, 1 - _CERTAIN)
    return np.asarray(np.log(inside / (1 - inside)))


def reliability(
    scores: ArrayLike,
    truth: ArrayLike,
    task: ArrayLike,
    benchmark: ArrayLike | None = None,
    bins: int = BINS,
    *,
    accepted: ArrayLike | None = None,
    weights: Floats | None = None,
) -> Reliability:
    """Return the reliability table of scores (N,) in [0, 1] over ``bins`` equal bins; tasks are
    clusters. ``accepted`` (N,) are the judge's own verdicts, which are counted; ``weights`` (N,)
    apply to means and rates, not to counts."""
    w = np.ones(len(np.asarray(scores))) if weights is None else weights
    x, y = np.asarray(scores, dtype=float), np.asarray(truth, dtype=bool)
    tasks = np.unique(np.asarray(task), return_inverse=True)[1]
    index = np.minimum((x * bins).astype(int), bins - 1)
    used = np.unique(index)
    inside = index[:, None] == used
    interval = rates_by_cluster(
        inside & y[:, None], inside, tasks, benchmark, weights=weights
    ).interval
    n, size = inside.sum(axis=0), w @ inside
    mean = (w * x) @ inside / size
    return Reliability(
        low=used / bins,
        high=(used + 1) / bins,
        n=n,
        tasks=np.array([len(np.unique(tasks[column])) for column in inside.T], dtype=np.int64),
        mean_score=mean,
        rate=interval,
        calibration_error=float(size @ np.abs(interval.estimate - mean) / max(w.sum(), 1e-300)),
        brier=float(np.average((x - y) ** 2, weights=w)),
        accepted=None if accepted is None else np.asarray(accepted, dtype=np.int64) @ inside,
    )


def _of_verdicts(x: Floats, y: np.ndarray, w: Floats) -> FittedMap:
    """Return the two rates; the same for both verdicts if the rejected succeed more often."""
    accepted = x >= 0.5
    hits = np.array([w[~accepted & y].sum(), w[accepted & y].sum()]) + 0.5
    trials = np.array([w[~accepted].sum(), w[accepted].sum()]) + 1
    if hits[0] / trials[0] > hits[1] / trials[1]:
        hits, trials = np.full(2, hits.sum()), np.full(2, trials.sum())
    return FittedMap("verdict", (0.0, 1.0), tuple((hits / trials).tolist()))


def _platt(x: Floats, y: np.ndarray, w: Floats) -> tuple[float, float]:
    """Slope and intercept of least cross-entropy, by Newton's method with halved steps."""
    positives, total = float(w[y].sum()), float(w.sum())
    target = np.where(y, (positives + 1) / (positives + 2), 1 / (total - positives + 2))
    columns = np.column_stack([x, np.ones(len(x))])

    def loss(weights: Floats) -> float:
        logits = columns @ weights
        return float(w @ (np.logaddexp(0, logits) - target * logits))

    weights = np.array([0.0, np.log((positives + 1) / (total - positives + 1))])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(columns @ weights)))
        gradient = columns.T @ (w * (p - target))
        curvature = (columns.T * (w * p * (1 - p))) @ columns + 1e-10 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-12:
            step /= 2
        weights = weights - step
        if np.abs(step).max() < 1e-10:
            break
    return float(weights[0]), float(weights[1])
