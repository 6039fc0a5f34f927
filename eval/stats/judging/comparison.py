"""Which judges differ: paired differences on the same resamples, McNemar, Holm.

McNemar compares accuracy. It says nothing about precision, because two judges accept different
trajectories and so have different denominators: use ``paired_differences`` for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trajudge.eval.stats.interval import Bools, Floats, Interval, Ints, t_quantile
from trajudge.eval.stats.intervals.cluster_bootstrap import (
    ONE_CLUSTER,
    Clusters,
    Replicates,
    Statistic,
    bootstrap_replicates,
    percentile_interval,
)
from trajudge.eval.stats.intervals.clustered_rates import between_clusters


@dataclass(frozen=True, eq=False)
class Differences:
    """``statistic[first] - statistic[second]`` for P pairs: everything of shape (P,).

    ``p_value`` inverts the percentile interval (two-sided, never below 2 / (B + 1));
    ``p_holm`` corrects it for the number of pairs.
    """

    pairs: Ints
    interval: Interval
    p_value: Floats
    p_holm: Floats


@dataclass(frozen=True)
class McNemar:
    """Discordant counts and the exact two-sided p-values, conditional and mid-p."""

    only_first: int
    only_second: int
    p_value: float
    mid_p: float


def all_pairs(n: int) -> Ints:
    """List every unordered pair of ``range(n)``, (n (n-1) / 2, 2), in order."""
    return np.array(list(combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2)


def paired_differences(
    clusters: Clusters,
    statistic: Statistic,
    pairs: ArrayLike,
    rng: np.random.Generator,
    *,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
) -> Differences:
    """Cluster-bootstrap differences between statistics; ``pairs`` (P, 2) indexes its output."""
    chosen = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)

    def difference(totals: Floats) -> Floats:
        values = np.atleast_1d(statistic(totals))
        return np.asarray(values[..., chosen[:, 0]] - values[..., chosen[:, 1]])

    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = difference(clusters.total)
    if not clusters.resamplable:
        nothing = np.full(len(chosen), np.nan)
        interval = Interval(estimate, nothing, nothing, confidence, (ONE_CLUSTER,))
        return Differences(chosen, interval, nothing, nothing)
    replicates = bootstrap_replicates(clusters, difference, rng, n_resamples)
    p_value = np.where(np.isnan(estimate), np.nan, _two_sided(replicates))
    interval = percentile_interval(estimate, replicates, confidence)
    return Differences(chosen, interval, p_value, holm(p_value))


def distinguishable(differences: Differences, n: int, alpha: float = 0.05) -> Bools:
    """Who is told apart from whom, (n, n): symmetric, by the corrected p-value of each pair."""
    told = np.zeros((n, n), dtype=bool)
    with np.errstate(invalid="ignore"):
        apart = differences.p_holm <= alpha
    first, second = differences.pairs.T
    told[first, second] = told[second, first] = apart
    return told


def mcnemar(first_right: ArrayLike, second_right: ArrayLike) -> McNemar:
    """Exact McNemar test from who was right (N,), N independent items (McNemar 1947).

    Without a discordant item both p-values are 1: nothing tells the two apart.
    """
    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    if b + c == 0:
        return McNemar(0, 0, 1.0, 1.0)
    tail = float(special.bdtr(min(b, c), b + c, 0.5))
    at_most = float(special.bdtr(min(b, c) - 1, b + c, 0.5)) if min(b, c) else 0.0
    exact = min(1.0, 2 * tail)
    mid = 1.0 if b == c else tail + at_most
    return McNemar(b, c, exact, mid)


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
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    strata = np.zeros(len(x), dtype=int) if stratum is None else np.asarray(stratum)
    both = [np.unique(part, return_inverse=True)[1] for part in (strata, np.asarray(cluster))]
    order = np.lexsort((both[1], both[0]))
    where, name = (part[order] for part in both)
    starts = np.flatnonzero(np.r_[True, (np.diff(where) != 0) | (np.diff(name) != 0)])
    runs = np.diff(np.r_[starts, len(order)])
    # A row a task, padded with nan: every run against every other of the same task.
    place = np.arange(runs.max()) < runs[:, None]
    padded = np.full((2, *place.shape), np.nan)
    padded[0][place], padded[1][place] = x[order], y[order]
    against = np.sign(padded[0][:, :, None] - padded[1][:, None, :])
    wins = (1 + np.nansum(against, axis=(1, 2)) / runs**2) / 2
    sizes = np.bincount(where[starts])
    mean = wins.mean(keepdims=True)
    half = np.sqrt(between_clusters(wins - mean, sizes)) / len(wins)
    half = half * t_quantile(confidence, float(len(wins) - len(sizes)))
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


def _two_sided(replicates: Replicates) -> Floats:
    """Twice the smaller share of replicates (P, B) on one side of zero."""
    defined = (~np.isnan(replicates)).sum(axis=1)
    fewer = np.minimum((replicates <= 0).sum(axis=1), (replicates >= 0).sum(axis=1))
    return np.asarray(np.minimum(1.0, 2 * (1 + fewer) / (1 + defined)))
