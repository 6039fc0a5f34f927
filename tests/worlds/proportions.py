"""How often an interval for one proportion covers: Figure 1a of Statistical Precipice.

The paper simulates; here the average is exact, because a binomial under a Beta prior is
beta-binomial and the posterior is a Beta again. Average coverage is not a guarantee for every
rate: ``worst_coverage`` gives the least over all fixed rates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trajudge.stats.intervals import Floats, Interval, clopper_pearson, normal_quantile, wilson

Method = Callable[[ArrayLike, ArrayLike, float], Interval]


def wald(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Textbook normal interval: zero width at 0 and at n successes."""
    n = np.asarray(trials, dtype=float)
    p = np.asarray(successes, dtype=float) / n
    half = normal_quantile(confidence) * np.sqrt(p * (1 - p) / n)
    return Interval(p, p - half, p + half, confidence)


def jeffreys(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Equal-tailed posterior interval under Beta(1/2, 1/2), closed at 0 and n (Brown 2001)."""
    k, n = (np.asarray(part, dtype=float) for part in (successes, trials))
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = (special.betaincinv(k + 0.5, n - k + 0.5, tail) for tail in tails)
    return Interval(k / n, np.where(k == 0, 0, low), np.where(k == n, 1, high), confidence)


METHODS: dict[str, Method] = {
    "wilson": wilson,
    "wald": wald,
    "clopper-pearson": clopper_pearson,
    "jeffreys": jeffreys,
}


@dataclass(frozen=True, eq=False)
class BetaMixture:
    """A prior on success rates: ``sum_i weight_i Beta(a_i, b_i)``; arrays of one shape (M,)."""

    weight: Floats
    a: Floats
    b: Floats


def bimodal_prior(trials: int, failing: float = 0.68) -> BetaMixture:
    """Jeffreys posteriors of cells that failed, or succeeded, in all of ``trials`` (section 21.1).

    Reading A of Figure 1a fixes ``trials`` = 3 (the paper's data) for every rollout budget;
    reading B calls this anew with each budget. Both give the printed 25 % and 95 % at R = 3.
    """
    half, most = 0.5, trials + 0.5
    weight = np.array([failing, 1 - failing])
    return BetaMixture(weight, a=np.array([half, most]), b=np.array([most, half]))


def average_coverage(
    method: Method, trials: int, prior: BetaMixture, confidence: float = 0.95
) -> float:
    """Exact probability that the interval from ``trials`` rollouts covers a rate of the prior."""
    k = np.arange(trials + 1)[:, None]
    interval = method(k, trials, confidence)
    a, b = prior.a + k, prior.b + trials - k
    log_choose = -np.log1p(trials) - special.betaln(trials - k + 1, k + 1)
    probability = np.exp(log_choose + special.betaln(a, b) - special.betaln(prior.a, prior.b))
    inside = special.betainc(a, b, np.clip(interval.high, 0, 1))
    inside = inside - special.betainc(a, b, np.clip(interval.low, 0, 1))
    return float((probability * inside).sum(axis=0) @ prior.weight)


def coverage_at(method: Method, trials: int, rates: Floats, confidence: float = 0.95) -> Floats:
    """Exact coverage at fixed rates in (0, 1), shape (P,) in and out."""
    k = np.arange(trials + 1)[:, None]
    interval = method(k, trials, confidence)
    log_choose = -np.log1p(trials) - special.betaln(trials - k + 1, k + 1)
    pmf = np.exp(log_choose + special.xlogy(k, rates) + special.xlog1py(trials - k, -rates))
    return np.asarray((pmf * interval.covers(rates)).sum(axis=0))


def worst_coverage(method: Method, trials: int, confidence: float = 0.95) -> float:
    """Least coverage over all fixed rates: it is approached just outside the intervals' ends."""
    interval = method(np.arange(trials + 1), trials, confidence)
    ends = np.concatenate([interval.low, interval.high])
    ends = np.concatenate([ends - 1e-9, ends + 1e-9])
    rates = ends[(ends > 0) & (ends < 1)]
    return float(coverage_at(method, trials, rates, confidence).min())
