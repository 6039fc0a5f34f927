"""Test whether two times of asking are told apart by more than the noise of asking twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats

_DRAWS = 9_999
# The ways to part four draws into two pairs; the first is that of the times.
_PARTS = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))


@dataclass(frozen=True)
class ExchangeTest:
    """``between``: how often draws of different times differ; ``within``: draws of the same time;
    ``p_value`` of "the times are exchangeable", one-sided."""

    between: float
    within: float
    p_value: float


def exchange_test(
    then: ArrayLike, now: ArrayLike, cluster: ArrayLike, rng: np.random.Generator
) -> ExchangeTest:
    """Compare two draws at one time with two at another, ``then`` and ``now`` (N, 2) as 0 or 1, of
    N items in the tasks that ``cluster`` (N,) numbers from 0.

    If nothing changed, each of the three ways to part the four draws of a task into pairs is as
    likely as that of the times: a permutation test, exact whatever the noise of each item is, and
    however the items of one task hang together.
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
    """Return how much the two draws of each part differ (N,), the mean of both parts."""
    differ = [np.abs(four[:, a] - four[:, b]) for a, b in parts]
    return np.asarray((differ[0] + differ[1]) / 2)
