"""Agreement of annotators over tasks: raw and Cohen's kappa of two, Krippendorff's alpha (2011)
of any number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from trajudge.stats.intervals import (
    Clusters,
    Floats,
    Interval,
    degrees_of_freedom,
    rates_by_cluster,
    ratio_limits,
    sum_clusters,
    t_quantile,
)

Scale = Literal["nominal", "ordinal", "interval"]

BY_CHANCE = "both raters give one and the same label throughout: kappa is undefined"

NOT_PAIRABLE = "no unit has two labels, or only one label occurs: alpha is undefined"

TOO_FEW_TASKS = "too few tasks, or none differs from another: no value is excluded"


@dataclass(frozen=True)
class AnnotatorAgreement:
    """Agreement of annotators on ``n`` units of ``clusters`` tasks; every interval (1,).

    ``raw`` and ``kappa`` are those of the first two annotators, ``alpha`` that of all.
    """

    n: int
    clusters: int
    raw: Interval
    kappa: Interval
    alpha: Interval


def annotator_agreement(
    labels: ArrayLike,
    cluster: ArrayLike,
    stratum: ArrayLike | None = None,
    scale: Scale = "nominal",
    confidence: float = 0.95,
    *,
    weights: Floats | None = None,
) -> AnnotatorAgreement:
    """Compute the agreement on labels (annotators, units), ``nan`` = not labelled.

    Units of one cluster (N,) are dependent; clusters lie within ``stratum`` (N,). Kappa is
    unweighted, alpha has the distance of ``scale``. Units with one label are excluded; ``weights``
    (N,) of units are the inverse of the probabilities with which they were drawn.
    """
    table = np.asarray(labels, dtype=float)
    paired = ~np.isnan(table[:2]).any(axis=0)
    values = np.unique(table[:2, paired])
    codes = np.searchsorted(values, table[:2, paired])
    cells = np.eye(max(len(values) ** 2, 1))[codes[0] * len(values) + codes[1]]
    drawn = None if weights is None else weights[paired]
    if drawn is not None:
        cells = cells * drawn[:, None]
    tasks = np.asarray(cluster)[paired]
    strata = None if stratum is None else np.asarray(stratum)[paired]
    sums = sum_clusters(cells, tasks, strata)
    raw = rates_by_cluster(
        codes[0] == codes[1], np.ones(()), tasks, strata, confidence=confidence, weights=drawn
    )
    kappa = _ratio(sums, _kappa_parts(len(values)), _informative(sums), confidence, BY_CHANCE)
    alpha = krippendorff_alpha(
        table, cluster, stratum, scale, confidence=confidence, weights=weights
    )
    return AnnotatorAgreement(int(paired.sum()), len(sums.sums), raw.interval, kappa, alpha)


def krippendorff_alpha(
    labels: ArrayLike,
    cluster: ArrayLike | None = None,
    stratum: ArrayLike | None = None,
    scale: Scale = "nominal",
    *,
    confidence: float = 0.95,
    weights: Floats | None = None,
) -> Interval:
    """Compute alpha (1,) of labels (annotators, units), ``nan`` = not labelled, with its
    interval over clusters of units (default: every unit is one)."""
    table = np.asarray(labels, dtype=float)
    paired = (~np.isnan(table)).sum(axis=0) > 1
    values = np.unique(table[:, paired][~np.isnan(table[:, paired])])
    counts = (table[:, paired, None] == values).sum(axis=0).astype(float)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    pairs = pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]
    if weights is not None:
        pairs = pairs * weights[paired][:, None, None]
    clusters = np.arange(len(paired)) if cluster is None else np.asarray(cluster)
    strata = None if stratum is None else np.asarray(stratum)[paired]
    sums = sum_clusters(pairs.reshape(len(counts), len(values) ** 2), clusters[paired], strata)
    parts = _alpha_parts(values, scale)
    return _ratio(sums, parts, _informative(sums), confidence, NOT_PAIRABLE)


Parts = tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]

"""Observed and expected disagreement from totals of pairs (..., V * V); both agreements are
``1 - observed / expected``."""


def _kappa_parts(size: int) -> Parts:
    def table(totals: Floats) -> Floats:
        cells = totals.reshape(*totals.shape[:-1], size, size)
        return np.asarray(cells / cells.sum(axis=(-2, -1), keepdims=True))

    def observed(totals: Floats) -> Floats:
        return np.asarray(1 - np.einsum("...ii->...", table(totals)))

    def expected(totals: Floats) -> Floats:
        p = table(totals)
        return np.asarray(1 - (p.sum(axis=-1) * p.sum(axis=-2)).sum(axis=-1))

    return observed, expected


def _alpha_parts(values: Floats, scale: Scale) -> Parts:
    def parts(totals: Floats) -> tuple[Floats, Floats]:
        pairs = totals.reshape(*totals.shape[:-1], len(values), len(values))
        margin = pairs.sum(axis=-1)
        n = margin.sum(axis=-1)
        distance = _distance(margin, values, scale)
        chance = margin[..., :, None] * margin[..., None, :]
        expected = (chance * distance).sum(axis=(-2, -1)) / (n * (n - 1))
        return (pairs * distance).sum(axis=(-2, -1)) / n, expected

    return lambda totals: parts(totals)[0], lambda totals: parts(totals)[1]


def _distance(margin: Floats, values: Floats, scale: Scale) -> Floats:
    """Return the squared distance of every two values (..., V, V); between ranks it depends on
    the margins."""
    if scale == "ordinal":
        ranks = np.cumsum(margin, axis=-1) - margin / 2
        return np.asarray((ranks[..., :, None] - ranks[..., None, :]) ** 2)
    if scale == "interval":
        return np.asarray((values[:, None] - values) ** 2)
    return np.asarray(values[:, None] != values, dtype=float)


def _informative(clusters: Clusters) -> Floats:
    """Return the number of pairs of each cluster (C,) that do not agree on the most frequent
    value, which determines the variance of a chance-corrected agreement."""
    size = round(clusters.sums.shape[1] ** 0.5)
    agreed = clusters.sums[:, :: size + 1]
    if not agreed.size:
        return np.zeros(len(clusters.sums))
    return np.asarray(clusters.sums.sum(axis=1) - agreed[:, agreed.sum(axis=0).argmax()])


def _ratio(
    clusters: Clusters, parts: Parts, sizes: Floats, confidence: float, undefined: str
) -> Interval:
    """Return ``1 - observed / expected`` (1,) with its Fieller interval, at most 1."""
    observed, expected = parts
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = float(expected(clusters.total)) if len(clusters.sums) else 0.0
        if not chance > 1e-12:
            nothing = np.full(1, np.nan)
            return Interval(nothing, nothing, nothing, confidence, (undefined,))
        estimate = np.array([1 - float(observed(clusters.total)) / chance])
        df = degrees_of_freedom(sizes, clusters.stratum_sizes)
        quantile = float(t_quantile(confidence, df))
        low, high = ratio_limits(clusters, observed, expected, quantile)
    notes = (TOO_FEW_TASKS,) if np.isnan(low) else ()
    ends = np.array([1 - high]).clip(min=-1.0), np.array([1 - low]).clip(max=1.0)
    return Interval(estimate, ends[0], ends[1], confidence, notes)
