"""Intervals of rates whose trials come in clusters: the trajectories of one task.

They share a goal and a site, so n of them tell less than n independent ones. Where every task has
one trial the interval is the exact binomial one (Clopper and Pearson 1934). Elsewhere it is
Wilson's score interval (1927) with two replacements: the effective number of trials, n over the
design effect 1 + ρ (Σ n² / Σ n - 1) of clusters of sizes n (Kish 1965), for n; and Student's
quantile for the normal one. ρ is the posterior mean of a beta-binomial model's correlation, whose
density before the data falls as 1 - 0.7 ρ. Only the share of the variance that the correlation adds
is estimated, therefore Student's degrees of freedom are those of the clusters over the square of
that share (Satterthwaite 1946). Among the intervals that were compared by simulation (that of
Korn and Graubard 1998, the beta-binomial posterior, Wilson's with the linearised variance) it is
the narrowest that covers; ``python -m benchmarks.coverage`` prints how often.

Weighted trials (labels that were drawn with unequal probabilities) have the linearised variance of
the weighted ratio instead, drawn towards that of clusters which agree throughout.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import (
    Floats,
    Interval,
    Ints,
    check_confidence,
    t_quantile,
)
from trajudge.eval.stats.intervals.binomial import NO_TRIALS, exact_limits, wilson_limits
from trajudge.eval.stats.intervals.cluster_bootstrap import sum_clusters

ONE_TASK = "it counts runs of one task only"

# What the design effect of full agreement within clusters weighs, in clusters that show the rarer
# outcome: with few of those the effect seen in weighted trials is too uncertain to be trusted.
PRIOR_CLUSTERS = 0.5

_CORRELATIONS = np.array(
    [0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.999]
)
_BEFORE = np.gradient(_CORRELATIONS) * (1 - 0.7 * _CORRELATIONS)
_LARGEST_CLUSTER = 512
"""Trials of a cluster that the likelihood counts one by one: more tell no more of ρ."""


@dataclass(frozen=True, eq=False)
class ClusteredRates:
    """Intervals of rates and what they rest on, all of one shape.

    ``design_effect`` is how many times larger the variance is than that of independent trials (of
    weighted ones: of as many independent trials as their weights amount to), at least 1; ``df`` are
    the degrees of freedom of Student's quantile, infinite where nothing is estimated.
    """

    interval: Interval
    design_effect: Floats
    df: Floats


@dataclass(frozen=True, eq=False)
class RateEvidence:
    """What the limits of rates (...) follow from: ``trials`` is their effective number,
    ``clusters`` the degrees of freedom of the clusters, ``df`` those of the rate."""

    rate: Floats
    trials: Floats
    design_effect: Floats
    clusters: Floats
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
    known = rate_evidence(h, n, np.asarray(stratum_sizes, dtype=np.int64), squares)
    undefined = np.isnan(known.df)
    alone = (n.max(axis=-1, initial=0.0) <= 1) & ~undefined & (squares is None)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = wilson_limits(known.rate, known.trials, t_quantile(confidence, known.df))
        exact = exact_limits(known.rate, known.trials, check_confidence(confidence))
        low, high = (np.where(alone, *both) for both in zip(exact, score, strict=True))
    low, high = (np.where(undefined, np.nan, end) for end in (low, high))
    total = n.sum(axis=-1)
    conditions = {NO_TRIALS: total == 0, ONE_TASK: undefined & (total > 0)}
    notes = tuple(note for note, where in conditions.items() if where.any())
    interval = Interval(known.rate, low, high, confidence, notes)
    return ClusteredRates(interval, known.design_effect, known.df)


def rate_evidence(
    hits: Floats, trials: Floats, stratum_sizes: Ints, squares: ArrayLike | None = None
) -> RateEvidence:
    """Compute what the limits of rates (...) follow from; arguments as ``clustered_rates``."""
    total = trials.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = hits.sum(axis=-1) / total
        clusters = degrees_of_freedom(trials, stratum_sizes)
        if squares is None:
            independent = total
            effect = _design_effect(hits, trials, rate, stratum_sizes)
        else:
            independent = total**2 / np.asarray(squares, dtype=float).sum(axis=-1)
            effect = _weighted_effect(hits, trials, rate, stratum_sizes, independent)
        # Weighted trials have no part whose variance the model knows.
        share = (effect - 1) / effect if squares is None else 1.0
        df = clusters / np.maximum(share, 1e-6) ** 2
    return RateEvidence(rate, independent / effect, effect, clusters, df)


def rates_by_cluster(
    hits: ArrayLike,
    trials: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
) -> ClusteredRates:
    """Rates (L,) from N observations: ``hits`` and ``trials`` (N, L) by ``cluster`` (N,) within
    ``stratum`` (N,), labels of any kind; ``weights`` (N,) are positive, such as one over the
    probability with which each was drawn. Equal weights are none."""
    counts = [np.asarray(column) for column in (hits, trials)]
    weight = unequal(weights)
    if weight is not None or not all(column.dtype == bool for column in counts):
        counts = [column.astype(float) for column in counts]
    columns = [
        column.reshape(column.shape[0], math.prod(column.shape[1:]))
        for column in np.broadcast_arrays(*counts)
    ]
    if weight is not None:
        each = weight[:, None]
        columns = [columns[0] * each, columns[1] * each, columns[1] * each**2]
    clusters = sum_clusters(np.concatenate(columns, axis=1), cluster, stratum)
    h, n, *squares = np.split(clusters.sums.T, len(columns))
    return clustered_rates(h, n, clusters.stratum_sizes, confidence, *squares)


def unequal(weights: ArrayLike | None) -> Floats | None:
    """Return the weights (N,) scaled to a mean of 1, None where all are equal or none is given.
    Raises ValueError unless all are positive and finite."""
    if weights is None:
        return None
    values = np.asarray(weights, dtype=float)
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError("weights must be positive numbers")
    if not len(values) or np.ptp(values) <= 1e-9 * values.max():
        return None
    return np.asarray(values / values.mean())


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


def _design_effect(hits: Floats, trials: Floats, rate: Floats, stratum_sizes: Ints) -> Floats:
    """Compute 1 + ρ (Σ n² / Σ n - 1) with the posterior mean of ρ, and what uneven numbers of
    trials add where strata have different rates, (...)."""
    agreeing = np.einsum("...c,...c->...", trials, trials) / trials.sum(axis=-1)
    several = agreeing > 1
    effect = np.where(np.isnan(agreeing), np.nan, 1.0)
    if several.any():
        h, n, at = hits[several], trials[several], rate[several]
        effect[several] += _correlation(h, n, stratum_sizes) * (agreeing[several] - 1)
        effect[several] += _between_strata(h, n, at, stratum_sizes)
    return effect


def _between_strata(hits: Floats, trials: Floats, rate: Floats, stratum_sizes: Ints) -> Floats:
    """Variance (L,) that comes of how many trials fall to strata whose rates differ, beyond that of
    independent trials, which has it already; as a share of the latter."""
    added = np.zeros(len(hits))
    for place in strata_of(stratum_sizes):
        total, m = trials[:, place].sum(axis=-1), len(place)
        if m > 1 and m < trials.shape[1]:
            apart = hits[:, place].sum(axis=-1) / np.maximum(total, 1e-12) - rate
            spread = trials[:, place].var(axis=-1, ddof=1) * m
            added += apart**2 * np.maximum(spread - total, 0) * (total > 0)
    independent = trials.sum(axis=-1) * rate * (1 - rate)
    return np.where(independent > 1e-12, added / np.maximum(independent, 1e-12), 0.0)


def _correlation(hits: Floats, trials: Floats, stratum_sizes: Ints) -> Floats:
    """Posterior mean (L,) of the correlation within clusters from ``hits`` and ``trials`` (L, C).

    The likelihood is beta-binomial, in Pólya's form: the next of i hits so far has the log-odds of
    (1 - ρ) p + ρ i. Every stratum has its own p, its rate with half a cluster of each outcome
    added. A part of a hit counts as that part.
    """
    shrink = min(1.0, _LARGEST_CLUSTER / trials.max())
    logs = np.zeros((len(hits), len(_CORRELATIONS)))
    for place in strata_of(stratum_sizes):
        h, n = hits[:, place] * shrink, trials[:, place] * shrink
        some = (n > 0).sum(axis=-1)
        rate = h.sum(axis=-1) / np.maximum(n.sum(axis=-1), 1e-12)
        p = ((rate * some + 0.5) / (some + 1))[:, None]
        top = math.ceil(n.max(initial=0.0))
        successes, failures, tried = (_exceeding(part, top) for part in (h, n - h, n))
        before = np.arange(top)
        for k, rho in enumerate(_CORRELATIONS.tolist()):
            base, added = 1 - rho, rho * before
            logs[:, k] += np.einsum("li,li->l", successes, np.log(base * p + added))
            logs[:, k] += np.einsum("li,li->l", failures, np.log(base * (1 - p) + added))
            logs[:, k] -= tried @ np.log(base + added)
    after = np.exp(logs - logs.max(axis=-1, keepdims=True)) * _BEFORE
    return np.asarray(after @ _CORRELATIONS / after.sum(axis=-1))


def _exceeding(sizes: Floats, top: int) -> Floats:
    """Count the clusters with more than i, (L, top) for i from 0, of ``sizes`` (L, C) up to
    ``top``; one that ends between i and i + 1 counts in part."""
    whole = np.floor(np.maximum(sizes, 0) + 1e-9).astype(np.int64)
    at = (whole + np.arange(len(sizes))[:, None] * (top + 1)).ravel()
    size = len(sizes) * (top + 1)
    ends, parts = (
        np.bincount(at, weights, size).reshape(-1, top + 1)
        for weights in (None, (np.maximum(sizes - whole, 0)).ravel())
    )
    beyond = np.cumsum(ends[:, ::-1], axis=-1)[:, ::-1]
    return np.asarray(beyond[:, 1:] + parts[:, :top])


def _weighted_effect(
    hits: Floats, trials: Floats, rate: Floats, stratum_sizes: Ints, independent: Floats
) -> Floats:
    """Compute how many times larger the linearised variance is than that of ``independent`` trials,
    drawn towards that of clusters which agree throughout, the more so the fewer clusters show the
    rarer outcome; at a rate of 0 or 1 it is that one."""
    total = trials.sum(axis=-1)
    variance = between_clusters(hits - rate[..., None] * trials, stratum_sizes)
    agreeing = independent * np.einsum("...c,...c->...", trials, trials) / total**2
    spread = rate * (1 - rate)
    some = spread > 1e-12
    seen = variance / total**2 * independent / np.where(some, spread, 1.0)
    # Clusters of little weight show little.
    parts = (hits, np.maximum(trials - hits, 0.0))
    rarer = np.minimum(*(_effective(np.where(part > 1e-12, trials, 0.0)) for part in parts))
    mixed = (rarer * np.where(some, seen, agreeing) + PRIOR_CLUSTERS * agreeing) / (
        rarer + PRIOR_CLUSTERS
    )
    return np.asarray(np.maximum(mixed, 1.0))


def _effective(sizes: Floats) -> Floats:
    """Effective number of clusters of these sizes (..., C), (Σ size)² / Σ size²; 0 of none."""
    squares = np.einsum("...c,...c->...", sizes, sizes)
    return np.asarray(sizes.sum(axis=-1) ** 2 / np.where(squares > 0, squares, 1.0))


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
