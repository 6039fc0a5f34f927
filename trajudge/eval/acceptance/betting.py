"""An anytime-valid test of a rate: a bet on every label, one after the other.

Each label y in {0, 1} comes with a weight w in (0, 1]. Under the null, that the weighted mean of
y is at most the bound b, no bet on ``w (y - b)`` gains on average, so the wealth of a player who
began with 1 exceeds 1 / alpha at any time with probability at most alpha (Ville's inequality).
One may therefore look after every label and stop when it pleases (Waudby-Smith and Ramdas 2024,
Estimating means of bounded random variables by betting). The wealth is the mean over players who
stake different shares, which needs no tuning (Cover's universal portfolio, on a grid).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajudge.stats.intervals import Floats

_STAKES = np.linspace(0.05, 0.95, 19)
_WORLDS = 2000
_MOST = 4000
_BISECTIONS = 20
_LARGEST = 700.0  # of a logarithm


def wealth(labels: ArrayLike, weights: ArrayLike, bound: float, *, above: bool = True) -> Floats:
    """Compute the wealth after each label, along the last axis of ``labels`` (..., N), as of the
    test that the rate is at most ``bound`` (``above``), or at least ``bound``."""
    gain = np.asarray(weights, float) * (np.asarray(labels, float) - bound)
    # The most that a label can cost is w b, or in the other direction w (1 - b).
    stakes = _STAKES / (bound if above else 1 - bound)
    bets = np.log1p((stakes if above else -stakes) * gain[..., None])
    logs = np.cumsum(bets, axis=-2)
    top = logs.max(axis=-1, keepdims=True)
    whole = top[..., 0] + np.log(np.exp(logs - top).mean(axis=-1))
    return np.asarray(np.exp(np.minimum(whole, _LARGEST)))


def largest_wealth(
    labels: ArrayLike, weights: ArrayLike, bound: float, *, above: bool = True
) -> float:
    """Compute the largest wealth so far; 1 without a label. At least 1 / alpha rejects the null."""
    return float(wealth(labels, weights, bound, above=above).max(initial=1.0))


def lower_limit(labels: ArrayLike, weights: ArrayLike, alpha: float) -> float:
    """Find what the rate is at least, with confidence 1 - alpha at all times at once; 0 where
    nothing is shown."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):  # every bet gains less as the bound rises
        middle = (low + high) / 2
        if largest_wealth(labels, weights, middle) >= 1 / alpha:
            low = middle
        else:
            high = middle
    return low


def labels_to_plan(
    target: float, truth: float, alpha: float, rng: np.random.Generator, power: float = 0.8
) -> int | None:
    """Count how many labels of equal weight decide with probability ``power``, were the rate
    ``truth``; None where none of 4000 does. From 2000 simulated sequences, read as labels come."""
    above = truth > target
    size = 250
    while size <= _MOST and truth != target:
        drawn = rng.random((_WORLDS, size)) < truth
        decided = np.zeros(size)
        for part in np.array_split(drawn, 20):
            path = np.maximum.accumulate(wealth(part, 1.0, target, above=above), axis=1)
            decided += (path >= 1 / alpha).sum(axis=0)
        enough = decided >= power * _WORLDS
        if enough.any():
            return int(enough.argmax()) + 1
        size *= 2
    return None
