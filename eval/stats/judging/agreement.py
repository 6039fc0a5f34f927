"""Agreement of annotators: kappa of two (plain or weighted), alpha of any number.

Sources: WebArena Verified, appendix D (kappa per site and category, macro-averaged, weighted by
tasks over sites); the standard error of Fleiss, Cohen and Everitt 1969; Krippendorff 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval, normal_quantile
from trajudge.eval.stats.intervals.cluster_bootstrap import cluster_bootstrap, sum_clusters

Disagreement = Literal["nominal", "linear", "quadratic"]
Scale = Literal["nominal", "ordinal", "interval"]

BY_CHANCE = "both raters give one and the same label throughout: kappa is undefined"
NOT_PAIRABLE = "no unit has two labels, or only one label occurs: alpha is undefined"


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa of one table; ``nan`` where chance agreement is certain."""

    kappa: float
    standard_error: float
    observed: float
    expected: float
    n: int


def cohen_kappa(table: ArrayLike, weights: Disagreement = "nominal") -> Kappa:
    """Kappa of a square table (K, K) of counts: rows one rater, columns the other.

    "linear" and "quadratic" weight disagreements between ordered categories.
    """
    counts = np.asarray(table, dtype=float)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not (counts >= 0).all():
        raise ValueError("kappa needs a square table of counts")
    n = counts.sum()
    if not n:
        return Kappa(np.nan, np.nan, np.nan, np.nan, 0)
    p = counts / n
    w = _agreement_weights(len(p), weights)
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    observed, expected = float((w * p).sum()), float(rows @ w @ columns)
    if np.isclose(expected, 1, rtol=0, atol=1e-12):
        return Kappa(np.nan, np.nan, observed, expected, int(n))
    kappa = (observed - expected) / (1 - expected)
    average = (w @ columns)[:, None] + (rows @ w)[None, :]
    spread = (p * (w - average * (1 - kappa)) ** 2).sum() - (kappa - expected * (1 - kappa)) ** 2
    error = np.sqrt(max(spread, 0.0) / n) / (1 - expected)
    return Kappa(float(kappa), float(error), observed, expected, int(n))


def kappa_interval(kappa: Kappa, confidence: float = 0.95) -> Interval:
    """The normal interval of one kappa, shape (1,)."""
    return combine_kappas([kappa], [1.0], confidence)


def macro_kappa(categories: Sequence[Kappa], confidence: float = 0.95) -> Interval:
    """A site's kappa (appendix D): the mean over its categories, taken as independent, (1,)."""
    return combine_kappas(categories, [1.0] * len(categories), confidence)


def combine_kappas(
    kappas: Sequence[Kappa], weights: Sequence[float], confidence: float = 0.95
) -> Interval:
    """Weighted mean of independent kappas, (1,): weight sites by tasks for the overall kappa.

    Undefined kappas are left out, with a note.
    """
    values = np.array([each.kappa for each in kappas])
    errors = np.array([each.standard_error for each in kappas])
    use = ~np.isnan(values)
    share = np.asarray(weights, dtype=float)[use]
    notes = () if use.all() else (BY_CHANCE,)
    if not use.any():
        nothing = np.full(1, np.nan)
        return Interval(nothing, nothing, nothing, confidence, (BY_CHANCE,))
    share = share / share.sum()
    estimate = np.array([share @ values[use]])
    half = normal_quantile(confidence) * np.sqrt((share**2) @ errors[use] ** 2)
    return Interval(estimate, estimate - half, estimate + half, confidence, notes)


def krippendorff_alpha(
    labels: ArrayLike,
    rng: np.random.Generator,
    scale: Scale = "nominal",
    *,
    n_resamples: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """Alpha (1,) of labels (raters, units), ``nan`` = not labelled, resampling units."""
    table = np.asarray(labels, dtype=float)
    values = np.unique(table[~np.isnan(table)])
    paired = (~np.isnan(table)).sum(axis=0) > 1
    counts = (table[:, paired, None] == values).sum(axis=0).astype(float)
    coincidences = (
        counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    ) / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]

    def statistic(totals: Floats) -> Floats:
        pairs = totals.reshape(*totals.shape[:-1], len(values), len(values))
        return _alpha(pairs, values, scale)[..., None]

    if len(values) < 2 or not paired.any():
        nothing = np.full(1, np.nan)
        return Interval(nothing, nothing, nothing, confidence, (NOT_PAIRABLE,))
    units = sum_clusters(coincidences.reshape(len(counts), -1), np.arange(len(counts)))
    return cluster_bootstrap(units, statistic, rng, n_resamples=n_resamples, confidence=confidence)


def _alpha(pairs: Floats, values: Floats, scale: Scale) -> Floats:
    """One minus observed over expected disagreement, from coincidences (..., V, V)."""
    margin = pairs.sum(axis=-1)
    n = margin.sum(axis=-1)
    if scale == "ordinal":
        ranks = np.cumsum(margin, axis=-1) - margin / 2
        distance = (ranks[..., :, None] - ranks[..., None, :]) ** 2
    elif scale == "interval":
        distance = (values[:, None] - values) ** 2
    else:
        distance = (values[:, None] != values).astype(float)
    chance = margin[..., :, None] * margin[..., None, :]
    observed = (pairs * distance).sum(axis=(-2, -1))
    expected = (chance * distance).sum(axis=(-2, -1)) / (n - 1)
    return np.asarray(1 - observed / expected)


def _agreement_weights(size: int, weights: Disagreement) -> Floats:
    if weights == "nominal" or size < 2:
        return np.eye(size)
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / (size - 1)
    return np.asarray(1 - distance ** (1 if weights == "linear" else 2))
