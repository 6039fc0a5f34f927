"""Intervals of rates whose trials come in clusters: the trajectories of one task.

They share a goal and a site, so n of them tell less than n independent ones. A rate gets Wilson's
score interval (Wilson 1927) with two replacements: the effective number of trials, n over the
design effect (Kish 1965), for n; and Student's quantile for the normal one, as Korn and Graubard
(1998) do for the exact interval. ``python -m benchmarks.coverage`` prints how often it covers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, Ints, t_quantile
from trajudge.eval.stats.intervals.binomial import NO_TRIALS, wilson_limits
from trajudge.eval.stats.intervals.cluster_bootstrap import sum_clusters

ONE_TASK = "it counts runs of one task only"

# What the design effect of full agreement within clusters weighs, in clusters that show the rarer
# outcome: with few of those the estimated effect is too uncertain to be trusted alone.
PRIOR_CLUSTERS = 0.5


@dataclass(frozen=True, eq=False)
class ClusteredRates:
    """Intervals of rates and what they rest on, all of one shape.

    ``design_effect`` is how many times larger the variance is than that of independent trials, at
    least 1; ``df`` are the degrees of freedom of Student's quantile.
    """

    interval: Interval
    design_effect: Floats
    df: Floats


def clustered_rates(
    hits: ArrayLike,
    trials: ArrayLike,
    stratum_sizes: ArrayLike,
    confidence: float = 0.95,
    squares: ArrayLike | None = None,
) -> ClusteredRates:
    """Rates (...) from ``hits`` and ``trials`` (..., C) of C clusters, strata in order.

    ``stratum_sizes`` (H,) adds up to C. A trial's hit may be any number in [0, 1] (a reward, a
    squared error). Of weighted trials, hits and trials are sums of weights and ``squares`` (..., C)
    the sums of their squares. Undefined, with the reason, without a trial or with all in one
    cluster.
    """
    h, n = np.broadcast_arrays(np.asarray(hits, float), np.asarray(trials, float))
    if squares is not None:  # as many unweighted trials as have the same variance (Kish 1965)
        scale = n.sum(axis=-1) / np.maximum(np.sum(squares, axis=-1), 1e-300)
        h, n = h * scale[..., None], n * scale[..., None]
    sizes = np.asarray(stratum_sizes, dtype=np.int64)
    whole, total = h.sum(axis=-1), n.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = whole / total
        variance = between_clusters(h - rate[..., None] * n, sizes)
        deff = _design_effect(h, n, rate, variance)
        df = degrees_of_freedom(n, sizes)
        low, high = wilson_limits(rate, total / deff, t_quantile(confidence, df))
    conditions = {NO_TRIALS: total == 0, ONE_TASK: np.isnan(df) & (total > 0)}
    notes = tuple(note for note, where in conditions.items() if where.any())
    return ClusteredRates(Interval(rate, low, high, confidence, notes), deff, df)


def rates_by_cluster(
    hits: ArrayLike,
    trials: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike | None = None,
    confidence: float = 0.95,
    *,
    weights: ArrayLike | None = None,
) -> ClusteredRates:
    """Rates (L,) from N observations: ``hits`` and ``trials`` (N, L) by ``cluster`` (N,) within
    ``stratum`` (N,), labels of any kind; ``weights`` (N,) are positive, such as one over the
    probability with which each was drawn."""
    counts = [np.asarray(column) for column in (hits, trials)]
    if not all(column.dtype == bool for column in counts):
        counts = [column.astype(float) for column in counts]
    columns = [
        column.reshape(column.shape[0], math.prod(column.shape[1:]))
        for column in np.broadcast_arrays(*counts)
    ]
    if weights is not None:
        each = np.asarray(weights, dtype=float)[:, None]
        columns = [columns[0] * each, columns[1] * each, columns[1] * each**2]
    clusters = sum_clusters(np.concatenate(columns, axis=1), cluster, stratum)
    h, n, *squares = np.split(clusters.sums.T, len(columns))
    return clustered_rates(h, n, clusters.stratum_sizes, confidence, *squares)


def clustered_limits(
    hits: Sequence[bool], cluster: Sequence[Hashable], stratum: Sequence[str] | None = None
) -> tuple[float | None, float | None]:
    """Compute the 95 % limits of the share of ``hits`` as numbers; None below two clusters."""
    if len(set(zip(stratum or repeat(""), cluster, strict=False))) < 2:
        return None, None
    number = {name: place for place, name in enumerate(dict.fromkeys(cluster))}
    rates = rates_by_cluster(
        np.array(hits, dtype=float), 1.0, [number[name] for name in cluster], stratum
    ).interval
    return float(rates.low[0]), float(rates.high[0])


def between_clusters(values: Floats, stratum_sizes: Ints, other: Floats | None = None) -> Floats:
    """Variance (...) of the sum of ``values`` (..., C) over draws of clusters within strata, or its
    covariance with the sum of ``other``.

    Strata of one cluster are taken together; a single one among them counts with its square,
    since its spread is not known.
    """
    total = np.zeros(values.shape[:-1])
    for place in strata_of(stratum_sizes):
        a, m = values[..., place], len(place)
        b = a if other is None else other[..., place]
        products = np.einsum("...c,...c->...", a, b)
        if m > 1:
            sums = a.sum(axis=-1)
            others = sums if other is None else b.sum(axis=-1)
            products = (products - sums * others / m) * (m / (m - 1))
        total = total + products
    return total


def degrees_of_freedom(sizes: Floats, stratum_sizes: Ints) -> Floats:
    """Effective number of clusters less the means that the variance is taken around, at least 1
    (...), from cluster ``sizes`` (..., C); ``nan`` where fewer than two clusters have a size.

    The effective number is (sum of sizes)^2 over the sum of squares (Kish 1965; Carter, Schnepel
    and Steigerwald 2017): a few large clusters count as few. A stratum in which two clusters or
    more have a size takes one degree, for its own mean. Where one has, ``between_clusters`` gives
    that cluster's square around the overall rate, as if such strata were collapsed into one
    (Cochran 1977, section 5A.12; Wolter 2007, section 2.5): together they take one.
    """
    squares = np.einsum("...c,...c->...", sizes, sizes)
    some = sizes > 0
    starts = (np.cumsum(stratum_sizes) - stratum_sizes)[stratum_sizes > 0]
    within = np.add.reduceat(some, starts, axis=-1, dtype=np.int64)
    means = np.count_nonzero(within > 1, axis=-1) + (within == 1).any(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.maximum(sizes.sum(axis=-1) ** 2 / squares - means, 1.0)
    return np.asarray(np.where(within.sum(axis=-1) > 1, df, np.nan))


def _design_effect(h: Floats, n: Floats, rate: Floats, variance: Floats) -> Floats:
    """Drawn towards that of clusters which agree throughout, the more so the fewer clusters show
    the rarer outcome; at a rate of 0 or 1 it is that one."""
    total = n.sum(axis=-1)
    agreeing = np.einsum("...c,...c->...", n, n) / total
    independent = total * rate * (1 - rate)
    some = independent > 1e-12 * total
    seen = np.where(some, variance / np.where(some, independent, 1.0), agreeing)
    rarer = np.minimum((h > 0).sum(axis=-1), (n - h > 1e-12).sum(axis=-1))
    mixed = (rarer * seen + PRIOR_CLUSTERS * agreeing) / (rarer + PRIOR_CLUSTERS)
    return np.asarray(np.maximum(mixed, 1.0))


def strata_of(stratum_sizes: Ints) -> tuple[Ints, ...]:
    """Return the places of the clusters of every stratum; those of one cluster are one stratum."""
    return _strata(tuple(stratum_sizes.tolist()))


@lru_cache(maxsize=64)
def _strata(sizes: tuple[int, ...]) -> tuple[Ints, ...]:
    places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    alone = [place for place in places if len(place) == 1]
    joined = [np.concatenate(alone)] if alone else []
    strata = (*(place for place in places if len(place) > 1), *joined)
    for place in strata:
        place.flags.writeable = False  # they are everybody's
    return strata
