"""Intervals for one binomial proportion (Statistical Precipice, section 4.2).

All take ``successes`` and ``trials`` of any broadcastable shape and answer in that shape.
Zero trials give ``nan`` with a note: nothing was observed, so nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, check_confidence, normal_quantile

Method = Callable[[ArrayLike, ArrayLike, float], Interval]
NO_TRIALS = "no trials: a proportion of nothing is undefined"


def wilson(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Score interval of Wilson (1927): equation 1 of section 4.2. Good from one trial on."""
    _, n, p = _proportion(successes, trials)
    low, high = wilson_limits(p, n, normal_quantile(confidence))
    return _interval(p, low, high, confidence)


def wilson_limits(rate: Floats, trials: Floats, quantile: ArrayLike) -> tuple[Floats, Floats]:
    """Compute the ends of the score interval of ``rate`` over ``trials``, a whole or an effective
    number, at a two-sided ``quantile``; all of broadcastable shape."""
    z2 = np.square(quantile)
    centre = (rate * trials + z2 / 2) / (trials + z2)
    half = np.sqrt(z2 * (rate * (1 - rate) * trials + z2 / 4)) / (trials + z2)
    # At 0 and n the end is 0 or 1 exactly; rounding must not exclude the estimate itself.
    low = np.where(rate == 0, 0.0 * centre, centre - half)
    high = np.where(rate == 1, 1.0 + 0.0 * centre, centre + half)
    return np.minimum(low, rate), np.maximum(high, rate)


def wald(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Textbook normal interval, kept for comparison: zero width at 0 and at n successes."""
    _, n, p = _proportion(successes, trials)
    half = normal_quantile(confidence) * np.sqrt(p * (1 - p) / n)
    return _interval(p, p - half, p + half, confidence)


def exact_limits(rate: Floats, trials: Floats, tail: float) -> tuple[Floats, Floats]:
    """Compute the ends of Clopper and Pearson's interval of ``rate`` over ``trials``, each of which
    errs with probability ``tail``; rate and trials of broadcastable shape."""
    hits, misses = rate * trials, (1 - rate) * trials
    with np.errstate(invalid="ignore"):
        low = scipy.special.betaincinv(np.maximum(hits, 1e-12), misses + 1, tail)
        high = scipy.special.betaincinv(hits + 1, np.maximum(misses, 1e-12), 1 - tail)
    return np.where(rate == 0, 0.0, low), np.where(rate == 1, 1.0, high)


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Exact interval of Clopper and Pearson (1934): never below nominal, hence wide."""
    k, n, p = _proportion(successes, trials)
    return _beta_interval(k, n, p, low=(0, 1), high=(1, 0), confidence=confidence)


def jeffreys(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Equal-tailed posterior interval under Beta(1/2, 1/2), closed at 0 and n (Brown 2001)."""
    k, n, p = _proportion(successes, trials)
    return _beta_interval(k, n, p, low=(0.5, 0.5), high=(0.5, 0.5), confidence=confidence)


METHODS: dict[str, Method] = {
    "wilson": wilson,
    "wald": wald,
    "clopper-pearson": clopper_pearson,
    "jeffreys": jeffreys,
}


def _proportion(successes: ArrayLike, trials: ArrayLike) -> tuple[Floats, Floats, Floats]:
    k, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    if not np.all((k >= 0) & (k <= n)):
        raise ValueError("successes must lie between 0 and trials")
    n = np.where(n > 0, n, np.nan)
    return k, n, k / n


def _beta_interval(
    k: Floats,
    n: Floats,
    p: Floats,
    *,
    low: tuple[float, float],
    high: tuple[float, float],
    confidence: float,
) -> Interval:
    """Beta quantiles with the pseudo-counts (successes, failures) given for each end."""
    tail = check_confidence(confidence)
    failures = n - k
    with np.errstate(invalid="ignore"):
        lows = scipy.special.betaincinv(k + low[0], failures + low[1], tail)
        highs = scipy.special.betaincinv(k + high[0], failures + high[1], 1 - tail)
    return _interval(p, np.where(k == 0, 0, lows), np.where(k == n, 1, highs), confidence)


def _interval(p: Floats, low: Floats, high: Floats, confidence: float) -> Interval:
    undefined = np.isnan(p)
    low, high = np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)
    return Interval(p, low, high, confidence, (NO_TRIALS,) if undefined.any() else ())
