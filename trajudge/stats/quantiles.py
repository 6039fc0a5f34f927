"""Quantiles of the normal, Student's and the beta distribution.

Importing SciPy's special functions takes longer than the few hundred quantiles of a screen: up to
64 at once are computed here, more by SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_FEW = 64

_REMEMBERED = 4_096

# From so many degrees of freedom on, the first terms of an expansion around the normal quantile
# are exact to the last digits.
_NEARLY_NORMAL = 1e5

_LEAST = 1e-12  # positive parameter, whose quantiles are 0 or 1 for all that shows


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(p)


def student_quantile(df: ArrayLike, p: ArrayLike) -> Floats:
    """Return Student's quantile at ``p`` for ``df`` degrees of freedom, of broadcastable shape;
    ``nan`` unless ``df`` is positive and p between 0 and 1."""
    df = np.asarray(df, dtype=float)
    return _each(_student, "stdtrit", np.where(df > 0, df, np.nan), p)


def beta_quantile(a: ArrayLike, b: ArrayLike, p: ArrayLike) -> Floats:
    """Return the quantile at ``p`` of the beta distribution with positive ``a`` and ``b``, of
    broadcastable shape; ``nan`` where one of them is nan."""
    return _each(_beta, "betaincinv", np.maximum(a, _LEAST), np.maximum(b, _LEAST), p)


def _each(one: Callable[..., float], name: str, *arguments: ArrayLike) -> Floats:
    shaped = np.broadcast_arrays(*arguments)
    size, shape = shaped[0].size, shaped[0].shape
    if size > _FEW:
        return np.asarray(getattr(scipy.special, name)(*shaped))
    values = map(one, *(each.ravel().tolist() for each in shaped))
    return np.fromiter(values, dtype=float, count=size).reshape(shape)


@lru_cache(_REMEMBERED)
def _student(df: float, p: float) -> float:
    if math.isnan(df) or not 0 < p < 1:
        return math.nan
    if p <= 0.5:
        return -_student(df, 1 - p) if p < 0.5 else 0.0
    if df > _NEARLY_NORMAL:  # Abramowitz and Stegun 26.7.5
        z = normal_quantile(p)
        return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    return math.sqrt(df) * math.exp(-_beta_logit(df / 2, 0.5, 2 * (1 - p)) / 2)


@lru_cache(_REMEMBERED)
def _beta(a: float, b: float, p: float) -> float:
    if math.isnan(a + b) or not 0 < p < 1:
        return math.nan
    if p > 0.5:
        return 1 - _beta(b, a, 1 - p)
    return math.exp(_log_logistic(_beta_logit(a, b, p)))


def _beta_logit(a: float, b: float, p: float) -> float:
    """Return log(x / (1 - x)) of the quantile x at ``p``.

    The logarithm of the distribution function is concave in the logit, so that Newton's steps
    approach the root from below, whatever they start from.
    """
    scale, middle = -_log_beta(a, b), math.log((a + 1) / (b + 1))
    logit = middle
    for _ in range(100):
        low, high = _log_logistic(logit), _log_logistic(-logit)
        density = scale + a * low + b * high  # logarithms, in the logit
        if logit <= middle:
            below = density + math.log(_fraction(a, b, math.exp(low)) / a)
        else:
            below = math.log1p(-math.exp(density) * _fraction(b, a, math.exp(high)) / b)
        step = (below - math.log(p)) * math.exp(below - density)
        logit -= step
        if abs(step) <= 1e-14 * max(1.0, abs(logit)):
            break
    return logit


def _log_logistic(x: float) -> float:
    """Return log(1 / (1 + exp(-x)))."""
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def _log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function; Γ(a + ½) / Γ(a) of a large ``a`` by its
    expansion, because the difference of its logarithms has few digits."""
    if b == 0.5 and a > 100:
        v = 1 / (2 * a)
        terms = -v / 4 + v**2 / 32 + 5 * v**3 / 128 - 21 * v**4 / 2048
        return 0.5 * math.log(math.pi / a) - math.log1p(terms)
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), which
    converges fast below (a + 1) / (a + b + 2), by Lentz's method."""
    below = 1 / (1 - (a + b) * x / (a + 1))
    above, value, m = 1.0, below, 0
    while True:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            below, above = 1 / (1 + term * below), 1 + term / above
            value *= below * above
        if abs(below * above - 1) < 1e-15:
            return value
