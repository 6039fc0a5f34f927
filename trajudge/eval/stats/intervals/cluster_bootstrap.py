"""Bootstrap of any function of counts over many judges at once, resampling whole clusters.

A task is a cluster: its trajectories share a goal and a site, so they are drawn together, with
replacement, within their benchmark (the stratum). Every statistic here is a function of sums,
so a resample is one row of multinomial weights and all judges' sums are one matrix product:
``totals (B, K) = weights (B, C) @ sums (C, K)``. Source: the stratified cluster bootstrap
(Davison and Hinkley 1997, section 3.8); Statistical Precipice, section 2.2, failure 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajudge.eval.stats.blas import one_thread
from trajudge.eval.stats.indices import Multiplicities
from trajudge.eval.stats.interval import Floats, Interval, Ints, check_confidence
from trajudge.eval.stats.streams import chunk_size, stream, stream_key

Replicates = NDArray[np.floating[Any]]
Statistic = Callable[[Any], Any]
"""Totals (..., K) to statistics (..., S); ``nan`` where a denominator is zero."""

BUDGET = 3 * 2**16
"""Weights worked on at once, 0.75 MB: large enough that calls cost little beside them."""

_AT_ONCE = 2**20

ONE_CLUSTER = "fewer than two clusters in every stratum: nothing to resample, no interval"


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sums per cluster (C, K), and the sizes (H,) of the strata in which clusters lie in order."""

    sums: Floats
    stratum_sizes: Ints

    @property
    def total(self) -> Floats:
        """Sums over everything, (K,)."""
        return np.asarray(self.sums.sum(axis=0))

    @property
    def resamplable(self) -> bool:
        """Whether any stratum has two clusters or more."""
        return bool((self.stratum_sizes > 1).any())


def sum_clusters(
    values: ArrayLike, cluster: ArrayLike, stratum: ArrayLike | None = None
) -> Clusters:
    """Add up ``values`` (N, K) by ``cluster`` (N,) within ``stratum`` (N,), labels of any kind.

    Raises ValueError on ``nan``: what a missing verdict counts as is decided before.
    """
    table = np.asarray(values)
    if table.dtype != bool:  # which takes an eighth of the memory
        table = np.asarray(table, dtype=float)
    if not np.isfinite(table).all():
        raise ValueError("values hold nan or infinity: decide what a missing value counts as first")
    clusters = _ordered(cluster)
    strata = np.zeros_like(clusters) if stratum is None else _ordered(stratum)
    order = np.lexsort((clusters, strata))
    if not len(order):
        return Clusters(table.astype(float), np.zeros(0, dtype=np.int64))
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = np.diff(clusters[order]) != 0
    begins[1:] |= np.diff(strata[order]) != 0
    starts = np.flatnonzero(begins)
    _, sizes = np.unique(strata[order[starts]], return_counts=True)
    return Clusters(_segment_sums(table, order, starts), sizes.astype(np.int64))


def _segment_sums(table: NDArray[Any], order: Ints, starts: Ints) -> Floats:
    """Add up the rows of ``table`` (N, K) between ``starts`` (C,) of ``order`` (N,): (C, K). A
    large table of counts is added up column by column, since adding makes a float of each."""
    if table.dtype != bool or table.size < _AT_ONCE:
        return np.add.reduceat(table[order], starts, dtype=float)
    sums = np.empty((len(starts), table.shape[1]))
    for place, column in enumerate(table.T):
        sums[:, place] = np.add.reduceat(column[order], starts, dtype=float)
    return sums


def _ordered(labels: ArrayLike) -> NDArray[Any]:
    """Return numbers (N,) in the order of the labels: integers as they are, in their memory."""
    values = np.asarray(labels)
    if np.issubdtype(values.dtype, np.signedinteger):
        return values
    return np.unique(values, return_inverse=True)[1]


def cluster_bootstrap(
    clusters: Clusters,
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
) -> Interval:
    """Percentile intervals (S,) of a statistic of totals.

    Resamples in which a statistic is undefined are left out of its interval, and noted.
    """
    replicates = bootstrap_replicates(clusters, statistic, rng, n_resamples)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.atleast_1d(statistic(clusters.total))
    if not clusters.resamplable:
        nothing = np.full(estimate.shape, np.nan)
        return Interval(estimate, nothing, nothing, confidence, (ONE_CLUSTER,))
    return percentile_interval(estimate, replicates, confidence)


def bootstrap_replicates(
    clusters: Clusters, statistic: Statistic, rng: np.random.Generator, n_resamples: int
) -> Replicates:
    """Compute the statistic on every resample, (S, B); all statistics see the same resamples.

    Counts are added and divided in float32, which holds the sums exactly and ratios to seven
    digits; sums that are not small integers take float64.
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, not {n_resamples}")
    key, sums = stream_key(rng), clusters.sums.T.astype(_dtype(clusters), order="C")
    step = chunk_size(len(clusters.sums), BUDGET)
    resampler = Multiplicities(clusters.stratum_sizes.tolist(), step)
    totals = np.empty((len(sums), step), dtype=sums.dtype)  # long rows: quick to divide
    with one_thread(), np.errstate(divide="ignore", invalid="ignore"):
        replicates = np.empty((np.size(statistic(clusters.total)), n_resamples), dtype=sums.dtype)
        for chunk, start in enumerate(range(0, n_resamples, step)):
            weights = resampler.draw(stream(key, 0, chunk)).astype(sums.dtype, copy=False)
            values = statistic(np.matmul(sums, weights.T, out=totals).T)
            replicates[:, start : start + step] = values[: n_resamples - start].T
    return replicates


def percentile_interval(estimate: Floats, replicates: Replicates, confidence: float) -> Interval:
    """Take the ends at the tail quantiles of ``replicates`` (S, B), which are sorted in place.

    Interpolation is linear as in ``numpy.nanquantile``. Undefined replicates sort to the end and
    are left out; an undefined estimate has no interval.
    """
    tail = check_confidence(confidence)
    replicates.sort(axis=1)  # several times faster than selecting: numpy sorts in vector units
    defined = np.full(len(replicates), replicates.shape[1])
    gaps = np.isnan(replicates[:, -1])
    defined[gaps] -= np.isnan(replicates[gaps]).sum(axis=1)
    low, high = (_sorted_quantile(replicates, defined, q) for q in (tail, 1 - tail))
    undefined = np.isnan(estimate)
    low[undefined] = high[undefined] = np.nan
    notes = []
    if undefined.any():
        notes.append(f"{undefined.sum()} statistics are undefined: a denominator is zero")
    worst = 1 - defined[~undefined].min(initial=replicates.shape[1]) / replicates.shape[1]
    if worst > 0:
        notes.append(f"undefined in up to {worst:.2%} of the resamples, which are left out")
    return Interval(estimate, low, high, confidence, tuple(notes))


def _sorted_quantile(rows: Replicates, counts: Ints, q: float) -> Floats:
    """Quantile of the first ``counts`` values of each sorted row; ``nan`` where there is none."""
    position = q * np.maximum(counts - 1, 0)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(counts - 1, 0))
    row = np.arange(len(rows))
    part = position - below
    return np.asarray(rows[row, below] * (1 - part) + rows[row, above] * part, dtype=float)


def _dtype(clusters: Clusters) -> type[np.float32] | type[np.float64]:
    """float32 where every possible total is an integer that it holds exactly."""
    sums = clusters.sums
    largest = len(sums) * np.abs(sums).max(initial=0.0)
    whole = bool((sums == np.rint(sums)).all())
    return np.float32 if whole and largest < 2**24 else np.float64
