"""How much more often a perturbation does something than what it is compared with, on the same
runs: the same prompt drawn again, or a benign text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.robustness.measures.pairs import PerturbedPairs
from trajudge.stats.comparison import holm
from trajudge.stats.intervals import clustered_differences, defined, sum_clusters

Floats = NDArray[np.float64]


class RateDifference(NamedTuple):
    """``trials`` runs seen under both: the first share minus the second, its 95 % limits over
    tasks, the two-sided p-value, and that adjusted for all perturbations (Holm 1979). None where
    there is no trial, or all are of one task."""

    trials: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None


def on_the_same_runs(pairs: PerturbedPairs, other: PerturbedPairs | None, values: Floats) -> Floats:
    """Return the ``values`` (M,) of another perturbation's runs in the order of these pairs (N,),
    NaN where it has none."""
    told = dict(zip(other.sources, values.tolist(), strict=True)) if other else {}
    return np.array([told.get(source, np.nan) for source in pairs.sources], float)


def rate_difference(first: Floats, second: Floats, cluster: NDArray[np.int64]) -> RateDifference:
    """Compare two indicators (N,) of the same runs; where either is NaN the run does not count."""
    both = ~np.isnan(first) & ~np.isnan(second)
    n = int(both.sum())
    if not n:
        return RateDifference(0)
    a, b = first[both], second[both]
    ones = np.ones(n)
    columns = sum_clusters(np.stack([a, b, ones], axis=1), cluster[both])
    hits, trials = columns.sums.T[:2], np.stack([columns.sums.T[2]] * 2)
    made = clustered_differences(hits, trials, columns.stratum_sizes)
    limits = (made.interval.low, made.interval.high, made.p_value)
    low, high, p = (defined(value.item()) for value in limits)
    return RateDifference(n, float(a.mean() - b.mean()), low, high, p)


def adjusted(differences: Sequence[RateDifference]) -> list[RateDifference]:
    """Return the differences with their p-values adjusted for there being several."""
    values = [np.nan if one.p_value is None else one.p_value for one in differences]
    return [
        one._replace(p_adjusted=defined(p))
        for one, p in zip(differences, holm(values), strict=True)
    ]
