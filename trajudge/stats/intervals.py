"""Intervals of rates, differences, agreement and scores whose trials come in clusters (tasks).

Numpy in, numpy out; every estimator names its source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajudge.stats import quantiles

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Interval:
    """A two-sided interval, or an array of them; ``nan`` if undefined.

    ``estimate``, ``low`` and ``high`` have one shape. ``notes`` are sentences on why a value is
    undefined or limited.
    """

    estimate: Floats
    low: Floats
    high: Floats
    confidence: float = 0.95
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> Floats:
        """``high - low``, same shape."""
        return np.asarray(self.high - self.low)

    def covers(self, truth: Floats | float) -> Bools:
        """Return True where ``truth`` is inside, ends included; False if undefined."""
        return np.asarray((self.low <= truth) & (truth <= self.high))


def check_confidence(confidence: float) -> float:
    """Return the tail area on each side. Raises ValueError for a level outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence!r}")
    return (1 - confidence) / 2


def defined(value: float) -> float | None:
    """Return a number as a float, None for ``nan``, which trajudge's files do not contain."""
    return None if math.isnan(value) else float(value)


def normal_quantile(confidence: float) -> float:
    """Return the two-sided standard normal quantile, 1.96 at 95 %."""
    return -quantiles.normal_quantile(check_confidence(confidence))


def t_quantile(confidence: float, df: Floats | float) -> Floats:
    """Return the two-sided Student quantile at ``df`` degrees of freedom; ``nan`` for df <= 0."""
    return quantiles.student_quantile(df, 1 - check_confidence(confidence))


Indices = NDArray[np.unsignedinteger]

Counts = NDArray[np.float32]

DIGITS, BITS = 8, 56

"""Most digits read from a word, and the bits they may fill: 64-bit words are then redrawn at
most once in 256 times to stay uniform."""


def uniform_indices(bound: int, size: int, rng: np.random.Generator) -> Indices:
    """Return ``size`` independent integers below ``bound``, (size,), exactly uniform."""
    digits = 1
    while digits < DIGITS and bound ** (2 * digits) <= 2**BITS:
        digits *= 2
    words: Indices = rng.integers(0, bound**digits, size=-(-size // digits), dtype=np.uint64)
    while digits > 1:
        digits //= 2
        words = _halves(words, bound**digits)
    return words[:size]


class Multiplicities:
    """How often each value comes up when blocks of values are resampled, ``n`` times over.

    Within each block of ``size`` values, ``size`` are drawn with replacement: a multinomial row.
    Indices are drawn and counted, which is many times faster than ``rng.multinomial``. Buffers
    are kept from draw to draw: asking the system for fresh pages costs as much as the draws.
    """

    def __init__(self, sizes: Sequence[int], n: int) -> None:
        self.sizes = tuple(sizes)
        self._drawn = np.empty((max(self.sizes, default=0), n), dtype=np.int64)
        self._counts = np.empty((n, sum(self.sizes)), dtype=np.float32)

    def draw(self, rng: np.random.Generator) -> Counts:
        """Draw counts (n, sum(sizes)), which are valid until the next draw."""
        n, width = self._counts.shape
        flat, index = self._counts.reshape(-1), np.arange(n) * width
        flat.fill(0)
        for size in self.sizes:
            block = self._drawn[:size]
            indices = uniform_indices(size, size * n, rng).reshape(size, n)
            np.add.at(flat, np.add(indices, index, out=block).reshape(-1), np.float32(1))
            index += size
        return self._counts


def _halves(words: Indices, base: int) -> Indices:
    """High and low halves of ``words`` (W,) in base ``base``, (2W,), in the narrowest type."""
    wide = words.dtype.type(base)
    high = words // wide
    halves = np.empty(2 * len(words), dtype=np.min_scalar_type(base - 1))
    halves[: len(words)] = high
    halves[len(words) :] = words - high * wide
    return halves


Key = NDArray[np.uint64]


def stream_key(rng: np.random.Generator) -> Key:
    """Return 128 bits from the caller's generator, its only use."""
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


def stream(key: Key, part: int = 0, chunk: int = 0) -> np.random.Generator:
    """Return the random stream of one part (an app, a stage) and one chunk of replicates.

    numpy's seed sequence makes streams with different (part, chunk) independent; SFC64 is its
    fastest generator, which matters where most of the work is random numbers.
    """
    seed = np.random.SeedSequence(key.tolist(), spawn_key=(part, chunk))
    return np.random.Generator(np.random.SFC64(seed))


def chunk_size(cells: int, budget: int = 2**17) -> int:
    """Return the number of replicates per chunk, 16 to 1,000: bounded memory, a function of the
    data alone."""
    return max(16, min(1000, budget // max(cells, 1)))


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Return the thread pools of the loaded libraries, including numpy's."""
    return import_module("threadpoolctl").ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Run products on the calling thread inside this context; afterwards the pools are restored."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


NO_TRIALS = "no trials: a proportion of nothing is undefined"


def wilson(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the score interval of Wilson (1927): equation 1 of section 4.2, for one trial or
    more."""
    n, p = _proportion(successes, trials)
    low, high = wilson_limits(p, n, normal_quantile(confidence))
    return _interval(p, low, high, confidence)


def wilson_limits(rate: Floats, trials: Floats, quantile: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of the score interval of ``rate`` over ``trials``, an integer or an
    effective number, at a two-sided ``quantile``; all of broadcastable shape."""
    z2 = np.square(quantile)
    centre = (rate * trials + z2 / 2) / (trials + z2)
    half = np.sqrt(z2 * (rate * (1 - rate) * trials + z2 / 4)) / (trials + z2)
    # At 0 and n the end is 0 or 1 exactly; rounding must not exclude the estimate itself.
    low = np.where(rate == 0, 0.0 * centre, centre - half)
    high = np.where(rate == 1, 1.0 + 0.0 * centre, centre + half)
    return np.minimum(low, rate), np.maximum(high, rate)


def exact_limits(rate: Floats, trials: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return the ends of Clopper and Pearson's interval of ``rate`` over ``trials``, with the
    error ``tail`` at each; rate and trials of broadcastable shape."""
    hits, misses = rate * trials, (1 - rate) * trials
    low = quantiles.beta_quantile(np.where(rate == 0, np.nan, hits), misses + 1, tail)
    high = quantiles.beta_quantile(hits + 1, np.where(rate == 1, np.nan, misses), 1 - tail)
    return np.where(rate == 0, 0.0, low), np.where(rate == 1, 1.0, high)


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return the exact interval of Clopper and Pearson (1934): conservative, hence wide."""
    n, p = _proportion(successes, trials)
    low, high = exact_limits(p, n, check_confidence(confidence))
    return _interval(p, low, high, confidence)


def _proportion(successes: ArrayLike, trials: ArrayLike) -> tuple[Floats, Floats]:
    k, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    if not np.all((k >= 0) & (k <= n)):
        raise ValueError("successes must lie between 0 and trials")
    n = np.where(n > 0, n, np.nan)
    return n, k / n


def _interval(p: Floats, low: Floats, high: Floats, confidence: float) -> Interval:
    undefined = np.isnan(p)
    low, high = np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)
    return Interval(p, low, high, confidence, (NO_TRIALS,) if undefined.any() else ())


Replicates = NDArray[np.floating[Any]]

Statistic = Callable[[Any], Any]

"""Totals (..., K) to statistics (..., S); ``nan`` where a denominator is zero."""

BUDGET = 3 * 2**16

"""Weights worked on at once, 0.75 MB: large enough that calls cost little beside them."""

_AT_ONCE = 2**20

ONE_CLUSTER = "fewer than two clusters in every stratum: nothing to resample, no interval"


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sums per cluster (C, K), and the sizes (H,) of the strata by which clusters are sorted."""

    sums: Floats
    stratum_sizes: Ints

    @property
    def total(self) -> Floats:
        """Sums over everything, (K,)."""
        return np.asarray(self.sums.sum(axis=0))

    @property
    def resamplable(self) -> bool:
        """Whether any stratum has at least two clusters."""
        return bool((self.stratum_sizes > 1).any())


def sum_clusters(
    values: ArrayLike, cluster: ArrayLike, stratum: ArrayLike | None = None
) -> Clusters:
    """Sum ``values`` (N, K) by ``cluster`` (N,) within ``stratum`` (N,), labels of any type.

    Raises ValueError on ``nan``: the caller decides how a missing verdict counts.
    """
    table = np.asarray(values)
    if table.dtype != bool:  # which takes an eighth of the memory
        table = np.asarray(table, dtype=float)
    if not np.isfinite(table).all():
        raise ValueError("values hold nan or infinity: decide what a missing value counts as first")
    order, starts, sizes = _segments(cluster, stratum)
    if not len(order):
        return Clusters(table.astype(float), sizes)
    return Clusters(_segment_sums(table, order, starts), sizes)


def _segments(cluster: ArrayLike, stratum: ArrayLike | None) -> tuple[Ints, Ints, Ints]:
    """Return the order (N,) of rows by cluster within stratum, where in it each cluster starts
    (C,), and the sizes (H,) of the strata in clusters."""
    clusters = _ordered(cluster)
    strata = np.zeros_like(clusters) if stratum is None else _ordered(stratum)
    order = np.lexsort((clusters, strata))
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = np.diff(clusters[order]) != 0
    begins[1:] |= np.diff(strata[order]) != 0
    starts = np.flatnonzero(begins)
    _, sizes = np.unique(strata[order[starts]], return_counts=True)
    return order, starts, sizes.astype(np.int64)


def _segment_sums(table: NDArray[Any], order: Ints, starts: Ints) -> Floats:
    """Sum the rows of ``table`` (N, K) between ``starts`` (C,) of ``order`` (N,): (C, K). A
    large table of counts is summed by column, because the sum converts each to float."""
    if table.dtype != bool or table.size < _AT_ONCE:
        return np.add.reduceat(table[order], starts, dtype=float)
    sums = np.empty((len(starts), table.shape[1]))
    for index, column in enumerate(table.T):
        sums[:, index] = np.add.reduceat(column[order], starts, dtype=float)
    return sums


def _ordered(labels: ArrayLike) -> NDArray[Any]:
    """Return numbers (N,) in the order of the labels: integers unchanged, without a copy."""
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
    """Return percentile intervals (S,) of a statistic of totals.

    Resamples with an undefined statistic are excluded from its interval, with a note.
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
    """Compute the statistic on every resample, (S, B); all statistics have the same resamples.

    Counts are summed and divided in float32, which represents the sums exactly and ratios to seven
    digits; sums that are not small integers are in float64.
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
    """Return the tail quantiles of ``replicates`` (S, B), which are sorted in place.

    Interpolation is linear as in ``numpy.nanquantile``. Undefined replicates sort to the end and
    are excluded; an undefined estimate has no interval.
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
    """Return the quantile of the first ``counts`` values of each sorted row; ``nan`` without
    any."""
    position = q * np.maximum(counts - 1, 0)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(counts - 1, 0))
    row = np.arange(len(rows))
    part = position - below
    return np.asarray(rows[row, below] * (1 - part) + rows[row, above] * part, dtype=float)


def _dtype(clusters: Clusters) -> type[np.float32] | type[np.float64]:
    """Return float32 if it represents every possible total exactly, because all are small
    integers."""
    sums = clusters.sums
    largest = len(sums) * np.abs(sums).max(initial=0.0)
    whole = bool((sums == np.rint(sums)).all())
    return np.float32 if whole and largest < 2**24 else np.float64


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
    """Intervals of rates and their evidence, all of one shape.

    ``design_effect`` is the ratio of the variance to that of independent trials (for weighted
    trials: of as many independent trials as their weights amount to), at least 1; ``df`` are the
    degrees of freedom of Student's quantile, infinite if nothing is estimated.
    """

    interval: Interval
    design_effect: Floats
    df: Floats


@dataclass(frozen=True, eq=False)
class RateEvidence:
    """The inputs of the limits of rates (...): ``trials`` is their effective number,
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
    """Compute rates (...) from ``hits`` and ``trials`` (..., C) of C clusters, sorted by stratum.

    ``stratum_sizes`` (H,) sums to C. A trial's hit may be any number in [0, 1] (a reward, a squared
    error). With weights, hits and trials are sums of weights and ``squares`` (..., C) sums of their
    squares. Undefined, with the reason, without a trial or with all in one cluster.
    """
    h, n = np.broadcast_arrays(np.asarray(hits, float), np.asarray(trials, float))
    known = rate_evidence(h, n, np.asarray(stratum_sizes, dtype=np.int64), squares)
    undefined, tail = np.isnan(known.df), check_confidence(confidence)
    alone = (n.max(axis=-1, initial=0.0) <= 1) & ~undefined & (squares is None)
    with np.errstate(divide="ignore", invalid="ignore"):
        quantile = quantiles.student_quantile(known.df, 1 - tail)
        ends = np.stack(wilson_limits(known.rate, known.trials, quantile))
        if alone.any():
            exact = exact_limits(np.where(alone, known.rate, np.nan), known.trials, tail)
            ends = np.where(alone, np.stack(exact), ends)
    low, high = np.where(undefined, np.nan, ends)
    total = n.sum(axis=-1)
    notes = [NO_TRIALS] if (total == 0).any() else []
    notes += [ONE_TASK] if (undefined & (total > 0)).any() else []
    interval = Interval(known.rate, low, high, confidence, tuple(notes))
    return ClusteredRates(interval, known.design_effect, known.df)


def rate_evidence(
    hits: Floats, trials: Floats, stratum_sizes: Ints, squares: ArrayLike | None = None
) -> RateEvidence:
    """Compute the inputs of the limits of rates (...); arguments as ``clustered_rates``.

    The design effect is that of the linearised variance, shrunk towards that of clusters with full
    agreement, the more the fewer clusters show the rarer outcome; at a rate of 0 or 1 it is the
    latter. For unweighted trials it is that of a model unless the linearised one is larger: 1 + ρ
    (Σ n² / Σ n - 1), ρ from ``_correlation``, and ``_between_strata``.
    """
    total = trials.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = hits.sum(axis=-1) / total
        clusters = degrees_of_freedom(trials, stratum_sizes)
        agreeing = np.einsum("...c,...c->...", trials, trials) / total
        independent = total
        if squares is not None:
            independent = total**2 / np.asarray(squares, dtype=float).sum(axis=-1)
        variance = between_clusters(hits - rate[..., None] * trials, stratum_sizes)
        throughout = independent * agreeing / total
        spread = rate * (1 - rate)
        varies = spread > 1e-12
        seen = variance / total**2 * independent / np.where(varies, spread, 1.0)
        # By outcome the effective number of clusters that show it: those of little weight show
        # little.
        showing = np.where(np.stack([hits, trials - hits]) > 1e-12, trials, 0.0)
        showing_squares = np.einsum("...c,...c->...", showing, showing)
        showing_squares = np.where(showing_squares > 0, showing_squares, 1.0)
        rarer = (showing.sum(axis=-1) ** 2 / showing_squares).min(axis=0)
        effect = rarer * np.where(varies, seen, throughout) + PRIOR_CLUSTERS * throughout
        effect = np.maximum(effect / (rarer + PRIOR_CLUSTERS), 1.0)
        share = np.asarray(1.0)  # of the variance that is estimated from the clusters
        if squares is None:
            model = np.where(np.isnan(agreeing), np.nan, 1.0)
            several = agreeing > 1
            if several.any():
                h, n = hits[several], trials[several]
                model[several] += _correlation(h, n, stratum_sizes) * (agreeing[several] - 1)
                model[several] += _between_strata(h, n, rate[several], stratum_sizes)
            # The model is for rates that vary evenly: where tasks succeed or fail throughout, or
            # a few large ones do, the data show more.
            shown = several & (rate > 1e-12) & (rate < 1 - 1e-12) & (effect > model)
            effect = np.where(shown, effect, model)
            share = np.where(several & (effect >= agreeing), 1.0, (effect - 1) / effect)
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
    """Compute rates (L,) from N observations: ``hits`` and ``trials`` (N, L) by ``cluster`` (N,)
    within ``stratum`` (N,), labels of any type; ``weights`` (N,) are positive, such as inverse
    probabilities of being drawn. Equal weights have no effect."""
    h, n = np.broadcast_arrays(np.asarray(hits), np.asarray(trials))
    weight = unequal(weights)
    if weight is not None or h.dtype != bool or n.dtype != bool:
        h, n = h.astype(float), n.astype(float)
    shape = len(h), math.prod(h.shape[1:])
    columns = [h.reshape(shape), n.reshape(shape)]
    if weight is not None:
        each = weight[:, None]
        columns = [columns[0] * each, columns[1] * each, columns[1] * each**2]
    clusters = sum_clusters(np.concatenate(columns, axis=1), cluster, stratum)
    h, n, *squares = np.split(clusters.sums.T, len(columns))
    return clustered_rates(h, n, clusters.stratum_sizes, confidence, *squares)


def unequal(weights: ArrayLike | None) -> Floats | None:
    """Return the weights (N,) scaled to a mean of 1, None if all are equal or None is given.
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
    """Return the 95 % limits of the share of ``hits`` as numbers; None below two clusters."""
    if len(set(zip(stratum or repeat(""), cluster, strict=False))) < 2:
        return None, None
    number = {name: index for index, name in enumerate(dict.fromkeys(cluster))}
    rates = rates_by_cluster(
        np.array(hits, dtype=float), 1.0, [number[name] for name in cluster], stratum
    ).interval
    return float(rates.low[0]), float(rates.high[0])


def between_clusters(values: Floats, stratum_sizes: Ints, other: Floats | None = None) -> Floats:
    """Return the variance (...) of the sum of ``values`` (..., C) over draws of clusters within
    strata, or its covariance with the sum of ``other``.

    Strata of one cluster are combined; if there is only one of them it counts with its square,
    because its variance is unknown.
    """
    total = np.zeros(values.shape[:-1])
    for index in strata_of(tuple(stratum_sizes.tolist())):
        a, m = values[..., index], len(index)
        b = a if other is None else other[..., index]
        products = np.einsum("...c,...c->...", a, b)
        if m > 1:
            sums = a.sum(axis=-1)
            others = sums if other is None else b.sum(axis=-1)
            products = (products - sums * others / m) * (m / (m - 1))
        total = total + products
    return total


def degrees_of_freedom(sizes: Floats, stratum_sizes: Ints) -> Floats:
    """Return the effective number of clusters minus the number of estimated means, at least 1
    (...), from cluster ``sizes`` (..., C); ``nan`` if fewer than two clusters have a size.

    The effective number is (sum of sizes)^2 over the sum of squares (Kish 1965; Carter, Schnepel
    and Steigerwald 2017): a few large clusters count as few. A stratum with two or more clusters of
    positive size uses one degree, for its own mean. For one with a single such cluster
    ``between_clusters`` has that cluster's square around the overall rate, as if such strata were
    collapsed into one (Cochran 1977, section 5A.12; Wolter 2007, section 2.5): together they use
    one.
    """
    squares = np.einsum("...c,...c->...", sizes, sizes)
    some = sizes > 0
    starts = (np.cumsum(stratum_sizes) - stratum_sizes)[stratum_sizes > 0]
    within = np.add.reduceat(some, starts, axis=-1, dtype=np.int64)
    means = np.count_nonzero(within > 1, axis=-1) + (within == 1).any(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.maximum(sizes.sum(axis=-1) ** 2 / squares - means, 1.0)
    return np.asarray(np.where(within.sum(axis=-1) > 1, df, np.nan))


def _between_strata(hits: Floats, trials: Floats, rate: Floats, stratum_sizes: Ints) -> Floats:
    """Return the variance (L,) from the random number of trials in strata with different rates,
    beyond that of independent trials, which includes it; as a share of the latter."""
    added = np.zeros(len(hits))
    for index in strata_of(tuple(stratum_sizes.tolist())):
        total, m = trials[:, index].sum(axis=-1), len(index)
        if m > 1 and m < trials.shape[1]:
            apart = hits[:, index].sum(axis=-1) / np.maximum(total, 1e-12) - rate
            spread = trials[:, index].var(axis=-1, ddof=1) * m
            added += apart**2 * np.maximum(spread - total, 0) * (total > 0)
    independent = trials.sum(axis=-1) * rate * (1 - rate)
    return np.where(independent > 1e-12, added / np.maximum(independent, 1e-12), 0.0)


def _correlation(hits: Floats, trials: Floats, stratum_sizes: Ints) -> Floats:
    """Return the posterior mean (L,) of the correlation within clusters from ``hits`` and
    ``trials`` (L, C).

    The likelihood is beta-binomial, in Pólya's form: after i hits the next one has the log-odds of
    (1 - ρ) p + ρ i. Every stratum has its own p, its rate with half a cluster of each outcome
    added. Fractional hits count as fractions.
    """
    shrink = np.minimum(1.0, _LARGEST_CLUSTER / trials.max(axis=-1, keepdims=True))
    logs = np.zeros((len(hits), len(_CORRELATIONS)))
    base = 1 - _CORRELATIONS[:, None]
    for index in strata_of(tuple(stratum_sizes.tolist())):
        h, n = hits[:, index] * shrink, trials[:, index] * shrink
        some = (n > 0).sum(axis=-1)
        rate = h.sum(axis=-1) / np.maximum(n.sum(axis=-1), 1e-12)
        p = ((rate * some + 0.5) / (some + 1))[:, None, None]
        successes, failures, tried = _exceeding(np.stack([h, n - h, n]))
        added = _CORRELATIONS[:, None] * np.arange(tried.shape[-1])
        logs += np.einsum("li,lki->lk", successes, np.log(base * p + added))
        logs += np.einsum("li,lki->lk", failures, np.log(base * (1 - p) + added))
        logs -= tried @ np.log(base + added).T
    after = np.exp(logs - logs.max(axis=-1, keepdims=True)) * _BEFORE
    return np.asarray(after @ _CORRELATIONS / after.sum(axis=-1))


def _exceeding(sizes: Floats) -> Floats:
    """Count the clusters with more than i, (..., top) for i from 0, of ``sizes`` (..., C) up to
    ``top``; one that ends between i and i + 1 counts as a fraction."""
    top = math.ceil(sizes.max(initial=0.0))
    flat = sizes.reshape(-1, sizes.shape[-1])
    whole = np.floor(np.maximum(flat, 0) + 1e-9).astype(np.int64)
    at = (whole + np.arange(len(flat))[:, None] * (top + 1)).ravel()
    size = len(flat) * (top + 1)
    ends = np.bincount(at, None, size).reshape(-1, top + 1)
    parts = np.bincount(at, np.maximum(flat - whole, 0).ravel(), size).reshape(-1, top + 1)
    beyond = np.cumsum(ends[:, ::-1], axis=-1)[:, ::-1]
    return np.asarray(beyond[:, 1:] + parts[:, :top]).reshape(*sizes.shape[:-1], top)


@lru_cache(maxsize=64)
def strata_of(sizes: tuple[int, ...]) -> tuple[Ints, ...]:
    """Return the indices of the clusters of every stratum, for sizes (H,); strata of one cluster
    are combined."""
    places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    alone = [index for index in places if len(index) == 1]
    joined = [np.concatenate(alone)] if alone else []
    strata = (*(index for index in places if len(index) > 1), *joined)
    for index in strata:
        index.flags.writeable = False  # they are everybody's
    return strata


STEP = 1e-4


def influence_values(clusters: Clusters, statistic: Statistic) -> Floats:
    """Return the central differences of the statistic along each cluster's sums, (C, S)."""
    total = clusters.total
    with np.errstate(divide="ignore", invalid="ignore"):
        above = statistic(total + STEP * clusters.sums)
        below = statistic(total - STEP * clusters.sums)
    return np.asarray((above - below) / (2 * STEP))


UNBOUNDED = "too few tasks: every value from -1 to 1 agrees with them"


def clustered_agreement(
    counts: ArrayLike, stratum_sizes: ArrayLike, confidence: float = 0.95
) -> tuple[Interval, Interval]:
    """Return kappa's and Matthews' intervals (...), from counts TP, FP, FN, TN of C clusters (...,
    C, 4).

    Undefined if a margin is zero, with fewer than two clusters, if every cluster agrees fully
    (nothing varies), and if the tasks are too few to exclude any value.
    """
    cells = np.asarray(counts, dtype=float)
    sizes = np.asarray(stratum_sizes, dtype=np.int64)
    # What neither calls positive tells of neither: kappa and MCC vary with the rest.
    quantile = t_quantile(confidence, degrees_of_freedom(cells[..., :3].sum(axis=-1), sizes))
    total = cells.sum(axis=-2)
    tp, fp, fn, tn = np.moveaxis(total, -1, 0)
    predicted, true, denied, false = tp + fp, tp + fn, tn + fn, tn + fp
    top, top_slope = 2 * (tp * tn - fp * fn), 2 * np.stack([tn, -fn, -fp, tp], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = predicted * false + true * denied
        slope = [false + denied, predicted + false, true + denied, predicted + true]
        kappa = _fieller(cells, sizes, (top, top_slope), (chance, np.stack(slope, -1)), quantile)
        root = 2 * np.sqrt(predicted * true * denied * false)
        parts = [1 / predicted + 1 / true, 1 / predicted + 1 / false]
        parts += [1 / true + 1 / denied, 1 / false + 1 / denied]
        slopes = np.stack(parts, axis=-1) * root[..., None] / 2
        mcc = _fieller(cells, sizes, (top, top_slope), (root, slopes), quantile)
    return Interval(*kappa, confidence), Interval(*mcc, confidence)


Ratio = tuple[Floats, Floats]

"""A value (...) and its derivative by the four counts (..., 4)."""


def _fieller(
    cells: Floats, sizes: np.ndarray, top: Ratio, bottom: Ratio, quantile: Floats
) -> tuple[Floats, Floats, Floats]:
    """Estimate and ends of top / bottom: roots of (N - r D)^2 = t^2 Var(N - r D) in r."""
    n, d = top[0], np.where(bottom[0] > 0, bottom[0], np.nan)
    by_n = np.einsum("...ci,...i->...c", cells, top[1])
    by_d = np.einsum("...ci,...i->...c", cells, bottom[1])
    t2 = quantile**2
    a = d * d - t2 * between_clusters(by_d, sizes)
    b = n * d - t2 * between_clusters(by_n, sizes, by_d)
    c = n * n - t2 * between_clusters(by_n, sizes)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    low, high = np.maximum((b - root) / a, -1.0), np.minimum((b + root) / a, 1.0)
    wrong = cells[..., 1:3].sum(axis=(-2, -1))
    right = cells[..., 0].sum(axis=-1) + cells[..., 3].sum(axis=-1)
    known = (a > 0) & (wrong > 0) & (right > 0) & ((low > -1) | (high < 1))
    nothing = np.full(np.shape(n), np.nan)
    return np.asarray(n / d), np.where(known, low, nothing), np.where(known, high, nothing)


_BISECTIONS = 16  # of the logarithm over nine decades: p to three parts in ten thousand

Transform = Callable[[Floats], Floats]

Ends = Callable[[ArrayLike], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class RateDifferences:
    """``first - second`` (...), and the two-sided p-value of "no difference"."""

    interval: Interval
    p_value: Floats


def clustered_differences(
    hits: ArrayLike,
    trials: ArrayLike,
    stratum_sizes: ArrayLike,
    confidence: float = 0.95,
    *,
    transform: Transform = np.asarray,
    squares: ArrayLike | None = None,
    pairs: Ints | None = None,
    with_p_value: bool = True,
) -> RateDifferences:
    """Compute differences from ``hits`` and ``trials`` (2, ..., C) of C tasks, first and second, or
    with ``pairs`` (2, P) from those (..., J, C) of J raters, the indices of first and second among
    them: (..., P).

    ``transform`` is an increasing function of a rate, of which the difference is taken (such as F1
    of Jaccard's index). With weights, ``squares``, of the same shape, are the sums of squared
    weights (``clustered_rates``). Undefined if either rate or its interval is. The p-value requires
    a search: without ``with_p_value`` it is nan.
    """
    h, n = np.asarray(hits, dtype=float), np.asarray(trials, dtype=float)
    sizes = np.asarray(stratum_sizes, dtype=np.int64)
    known = rate_evidence(h, n, sizes, squares)
    rate, effective, clusters = known.rate, known.trials, known.clusters
    deviations = h - rate[..., None] * n
    variances = between_clusters(deviations, sizes)
    if pairs is not None:
        rate, effective, clusters, variances = (
            np.moveaxis(each[..., pairs], -2, 0) for each in (rate, effective, clusters, variances)
        )
        deviations = np.moveaxis(deviations[..., pairs, :], -3, 0)
    # Of the two rates over draws of tasks; 0 where one is still.
    spread = np.sqrt(variances[0] * variances[1])
    some = spread > 1e-12
    both = between_clusters(deviations[0], sizes, deviations[1])
    correlation = np.where(some, np.clip(both / np.where(some, spread, 1.0), -1, 1), 0.0)
    # So many degrees of freedom support no larger one. That of two tasks is always 1 or -1, and at
    # 1 the limits do not move with the level. From four degrees on the distance to 1 falls with
    # their square: judges that are all but one keep a narrow interval.
    df = clusters.min(axis=0)
    correlation = np.minimum(correlation, 1 - np.minimum(1 / df, 4 / df**2))
    value = transform(rate)
    difference = value[0] - value[1]

    def ends(level: ArrayLike) -> tuple[Floats, Floats]:
        # The clusters show the correlation of the two rates as well: all of it is estimated.
        quantile = quantiles.student_quantile(clusters, 1 - np.asarray(level) / 2)
        low, high = transform(np.stack(wilson_limits(rate, effective, quantile)))
        down, up = value - low, high - value
        below = down[0] ** 2 - 2 * correlation * down[0] * up[1] + up[1] ** 2
        above = up[0] ** 2 - 2 * correlation * up[0] * down[1] + down[1] ** 2
        return difference - np.sqrt(below), difference + np.sqrt(above)

    with np.errstate(invalid="ignore"):
        low, high = ends(1 - confidence)
        p_value = np.full(difference.shape, np.nan)
        if with_p_value:
            p_value = _p_value(ends, difference)
    return RateDifferences(Interval(difference, low, high, confidence), p_value)


def differences_by_cluster(
    first: ArrayLike,
    second: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike | None = None,
    *,
    trials: ArrayLike = 1.0,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
) -> RateDifferences:
    """Compute the difference (1,) of two rates on N observations: hits of the ``first`` and
    ``second`` (N,) among ``trials``, (N,) for both or (2, N), by ``cluster`` (N,) within
    ``stratum`` (N,), labels of any type; ``weights`` (N,) as in ``rates_by_cluster``."""
    hits = np.stack([np.asarray(part, dtype=float) for part in (first, second)])
    tried = np.broadcast_to(np.asarray(trials, dtype=float), hits.shape)
    weight = unequal(weights)
    each = 1.0 if weight is None else weight
    columns = np.concatenate([hits * each, tried * each, tried * np.square(each)])
    clusters = sum_clusters(columns.T, cluster, stratum)
    h, n, squares = clusters.sums.T.reshape(3, 2, 1, -1)
    return clustered_differences(
        h,
        n,
        clusters.stratum_sizes,
        confidence,
        squares=None if weight is None else squares,
    )


def _p_value(ends: Ends, difference: Floats) -> Floats:
    """Compute p by bisection of the level on a logarithmic scale, so that small p-values are
    precise."""
    small, large = np.full(difference.shape, np.log(1e-9)), np.zeros(difference.shape)
    for _ in range(_BISECTIONS):
        middle = (small + large) / 2
        low, high = ends(np.exp(middle))
        apart = (low > 0) | (high < 0)
        small, large = np.where(apart, small, middle), np.where(apart, middle, large)
    return np.where(np.isnan(ends(np.full(difference.shape, 0.05))[0]), np.nan, np.exp(large))


Sums = Callable[[Floats], Floats]

"""From totals (..., K) to values (...)."""


def ratio_limits(
    clusters: Clusters, top: Sums, bottom: Sums, quantile: float
) -> tuple[float, float]:
    """Return both ends of ``top / bottom``; ``nan`` if the data exclude no value (the
    denominator may be zero) and if all clusters are equal."""
    n, d = (float(part(clusters.total)) for part in (top, bottom))
    by_n, by_d = (influence_values(clusters, part) for part in (top, bottom))
    sizes, t2 = clusters.stratum_sizes, quantile**2
    a = d * d - t2 * float(between_clusters(by_d, sizes))
    b = n * d - t2 * float(between_clusters(by_n, sizes, by_d))
    c = n * n - t2 * float(between_clusters(by_n, sizes))
    spread = float(between_clusters(by_n - n / d * by_d, sizes)) if d else np.nan
    if not a > 0 or not spread > 1e-12 * d * d:
        return np.nan, np.nan
    root = np.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a


BINS = 10


def sum_scores(
    scores: ArrayLike,
    truth: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike | None = None,
    *,
    weights: ArrayLike = 1.0,
    bins: int = BINS,
) -> Clusters:
    """Add up 2K + 1 + bins columns of weighted trajectories (N,) by cluster within stratum, K being
    the number of distinct scores: positives and negatives by descending score, squared error,
    outcome minus score by bin.

    Raises ValueError for a score outside [0, 1] or nan.
    """
    values, right = np.asarray(scores, float), np.asarray(truth, bool)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("scores must lie between 0 and 1")
    levels, level = np.unique(-values, return_inverse=True)
    order, starts, sizes = _segments(cluster, stratum)
    rows = np.empty(len(order), dtype=np.int64)
    rows[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    distinct, gap = len(levels), right - values
    width = 2 * distinct + 1 + bins
    sums = np.zeros(len(starts) * width)
    for column, value in (
        (np.where(right, level, distinct + level), np.ones(len(values))),
        (2 * distinct, gap**2),
        (2 * distinct + 1 + np.minimum((values * bins).astype(int), bins - 1), gap),
    ):
        np.add.at(sums, rows * width + column, value * np.asarray(weights))
    return Clusters(sums.reshape(len(starts), width), sizes)


def score_statistic(bins: int = BINS) -> Statistic:
    """Convert totals (..., 2K + 1 + bins) to ROC-AUC, average precision, Brier's score and
    calibration error (..., 4); nan if undefined (ROC-AUC of one class, precision without a
    positive)."""

    def statistic(totals: Floats) -> Floats:
        levels = (totals.shape[-1] - 1 - bins) // 2
        positive, negative = totals[..., :levels], totals[..., levels : 2 * levels]
        true, false = positive.cumsum(axis=-1), negative.cumsum(axis=-1)
        positives, negatives = positive.sum(axis=-1), negative.sum(axis=-1)
        n = positives + negatives
        with np.errstate(divide="ignore", invalid="ignore"):
            above = (negative * (true - positive / 2)).sum(axis=-1)
            precision = np.where(positive > 0, true / (true + false), 0)
            rates = [
                above / (positives * negatives),
                (positive * precision).sum(axis=-1) / positives,
                totals[..., 2 * levels] / n,
                np.abs(totals[..., 2 * levels + 1 :]).sum(axis=-1) / n,
            ]
        return np.stack(rates, axis=-1)

    return statistic


BIASED = "a binned calibration error is biased upwards: --calibration shows every bin"


def clustered_scores(
    sums: ArrayLike, stratum_sizes: ArrayLike, bins: int = BINS, confidence: float = 0.95
) -> Interval:
    """Compute ROC-AUC, average precision, Brier's score and calibration error (..., 4) from the
    sums (..., C, 2K + 1 + bins) of ``sum_scores`` over C clusters; the last without an
    interval."""
    table, sizes = np.asarray(sums, dtype=float), np.asarray(stratum_sizes, dtype=np.int64)
    levels = (table.shape[-1] - 1 - bins) // 2
    positives, negatives = (
        table[..., part].sum(axis=-1) for part in (slice(levels), slice(levels, 2 * levels))
    )
    # The rarer class limits what is known of an order; a mean knows all trials.
    rarer = np.fmin(_clustered_scores_effective(positives), _clustered_scores_effective(negatives))
    ranked = np.fmin(degrees_of_freedom(positives, sizes), degrees_of_freedom(negatives, sizes))
    every = positives + negatives
    most = np.stack([rarer, rarer, _clustered_scores_effective(every)], axis=-1)
    df = np.stack([ranked, ranked, degrees_of_freedom(every, sizes)], axis=-1)
    estimate = np.asarray(score_statistic(bins)(table.sum(axis=-2)))
    rate, influence = estimate[..., :3], _influence(table, bins)
    moving = np.nan_to_num(_clustered_scores_effective(influence**2))
    spread = rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = moving * between_clusters(influence, sizes) + PRIOR_CLUSTERS * spread / most
        variance /= moving + PRIOR_CLUSTERS
        trials = np.where(spread > 1e-12, spread / variance, most)
        ends = wilson_limits(rate, trials, t_quantile(confidence, df))
    nothing = np.full((*estimate.shape[:-1], 1), np.nan)
    low, high = (np.concatenate([end, nothing], axis=-1) for end in ends)
    return Interval(estimate, low, high, confidence, (BIASED,))


def _influence(table: Floats, bins: int) -> Floats:
    """Influence of every cluster on the first three metrics, (..., 3, C)."""
    statistic, total = score_statistic(bins), table.sum(axis=-2, keepdims=True)
    up, down = statistic(total + STEP * table), statistic(total - STEP * table)
    return np.swapaxes(np.asarray(up - down)[..., :3] / (2 * STEP), -1, -2)


def _clustered_scores_effective(sizes: Floats) -> Floats:
    """Effective number of clusters of these sizes (..., C): (Σ size)² / Σ size²."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sizes.sum(axis=-1) ** 2 / np.square(sizes).sum(axis=-1))


def verdict_columns(verdicts: ArrayLike, truth: ArrayLike) -> Bools:
    """Return columns (N, G, 6) to sum over clusters, from ``verdicts`` (N, G) in {1, 0, -1 =
    missing} and ``truth`` (N, G)."""
    predicted, right = np.asarray(verdicts), np.asarray(truth, dtype=bool)
    yes, no, none = predicted == 1, predicted == 0, predicted < 0
    cells = [yes & right, yes & ~right, no & right, no & ~right, none & right, none & ~right]
    return np.stack(cells, axis=-1)
