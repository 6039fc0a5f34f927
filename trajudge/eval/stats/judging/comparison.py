"""Test which judges differ: McNemar, the probability of improvement, Holm's correction.

McNemar compares accuracy. It says nothing about precision, because two judges accept different
trajectories and so have different denominators: use ``eval.comparison.paired`` for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, Ints, t_quantile
from trajudge.eval.stats.intervals.clustered_rates import between_clusters

_COUNTED = 4_000  # sums up to which all ways are counted: beyond, a transform takes less time
_ROUNDING = 1e-12


@dataclass(frozen=True)
class McNemar:
    """Discordant counts and the exact two-sided p-values, conditional and mid-p."""

    only_first: int
    only_second: int
    p_value: float
    mid_p: float


def mcnemar(first_right: ArrayLike, second_right: ArrayLike) -> McNemar:
    """Exact McNemar test from who was right (N,), N independent items (McNemar 1947).

    Without a discordant item both p-values are 1: nothing tells the two apart.
    """
    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    if b + c == 0:
        return McNemar(0, 0, 1.0, 1.0)
    few = min(b, c)
    mid = 1.0 if b == c else _at_most(few, b + c) + _at_most(few - 1, b + c)
    return McNemar(b, c, _sign_test(b, c), mid)


def mcnemar_by_task(first_right: ArrayLike, second_right: ArrayLike, tasks: TaskRuns) -> float:
    """Compute the exact two-sided p-value of "both are right as often" from who was right (N,).

    The two judges are swapped in whole tasks, each way as likely (Fisher's randomization of signs,
    1935), because runs of one task err together: with one run a task it is McNemar's exact test.
    """
    gaps = tasks.sums(np.asarray(first_right, np.int64) - np.asarray(second_right, np.int64))
    sizes, counts = np.unique(np.abs(gaps[gaps != 0]), return_counts=True)
    if len(sizes) < 2:
        return _sign_test(int((gaps > 0).sum()), int((gaps < 0).sum()))
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
    """Return the chance of a sum of at least ``least`` either way, by the inverse Fourier transform
    of its characteristic function, Π cos(size t) ^ count: exact but for rounding, ``_ROUNDING``."""
    length = 1 << (2 * total + 1).bit_length()
    at = 2 * np.pi * np.arange(length // 2 + 1) / length
    wave = np.ones(len(at))
    for size, count in zip(sizes, counts, strict=True):
        wave *= np.cos(size * at) ** count
    chances = np.fft.irfft(wave, length)[: total + 1]  # of the sums 0 to total, alike below 0
    tail = 2 * chances[max(least, 1) :].sum() + (chances[0] if least == 0 else 0.0)
    return float(np.clip(tail, _ROUNDING, 1.0))


def _sign_test(above: int, below: int) -> float:
    """Return the two-sided p-value of as many above as below."""
    return min(1.0, 2 * _at_most(min(above, below), above + below))


def _at_most(heads: int, tosses: int) -> float:
    """Return the chance of as many heads or fewer."""
    return float(scipy.special.bdtr(heads, tosses, 0.5)) if heads >= 0 else 0.0


def _coin_tosses(n: int) -> Floats:
    """Return the chances of 0 to n heads (n + 1,)."""
    logs = scipy.special.gammaln(np.arange(n + 1) + 1.0)
    return np.asarray(np.exp(logs[-1] - logs - logs[::-1] - n * np.log(2)))


@dataclass(frozen=True, eq=False)
class TaskRuns:
    """How N runs lie in C tasks: their places task by task (N,), how many ``runs`` a task has (C,),
    and the ``sizes`` of the strata, in tasks."""

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

    def wins(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """Subtract how often a run of ``first`` (N,) is below one of ``second`` (N,) of its task
        from how often it is above: (C,)."""
        x, y = np.asarray(first), np.asarray(second)
        starts = np.cumsum(self.runs) - self.runs
        if x.dtype == bool and y.dtype == bool:  # the difference of two is its own sign
            difference = x[self.order].astype(float) - y[self.order]
            return np.asarray(np.add.reduceat(difference, starts) * self.runs)
        # A row a task, padded with nan: every run against every other of the same task.
        place = np.arange(self.runs.max()) < self.runs[:, None]
        padded = np.full((2, *place.shape), np.nan)
        padded[0][place], padded[1][place] = x[self.order], y[self.order]
        against = np.sign(padded[0][:, :, None] - padded[1][:, None, :])
        return np.asarray(np.nansum(against, axis=(1, 2)))


def probability_of_improvement(
    first: ArrayLike,
    second: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Interval:
    """P(X > Y), shape (1,): over tasks of equal weight the chance that a run of ``first`` (N,) is
    above one of ``second`` (N,), a tie counting half (Statistical Precipice, section 6.2; Agarwal
    et al. 2021). ``cluster`` (N,) names the task within its ``stratum``.

    The interval takes tasks for the units, with Student's quantile; undefined below two tasks.
    """
    return improvement(first, second, TaskRuns.of(cluster, stratum), confidence)


def improvement(
    first: ArrayLike, second: ArrayLike, tasks: TaskRuns, confidence: float = 0.95
) -> Interval:
    """Compute ``probability_of_improvement`` on runs whose ``tasks`` several pairs share."""
    wins = (1 + tasks.wins(first, second) / tasks.runs**2) / 2
    mean = wins.mean(keepdims=True)
    half = np.sqrt(between_clusters(wins - mean, tasks.sizes)) / len(wins)
    half = half * t_quantile(confidence, float(len(wins) - len(tasks.sizes)))
    return Interval(mean, np.maximum(mean - half, 0), np.minimum(mean + half, 1), confidence)


def holm(p_values: ArrayLike) -> Floats:
    """Step-down adjusted p-values (Holm 1979), same shape; ``nan`` is no test and stays so."""
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1)
    return adjusted
