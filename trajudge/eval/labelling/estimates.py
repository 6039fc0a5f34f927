"""The precision of each judge from the labels of a queue, unbiased whatever was drawn more often.

The estimates are of the trajectories that the queue was drawn from (its frame), not of other tasks.
``corrected`` is prediction-powered: the mean prediction over what a judge accepts, corrected by the
residuals of the labelled part, each weighted by one over its inclusion probability. ``labels_only``
is the weighted mean of the labels. Variances are those of a sample of fixed size with unequal
probabilities (Deville 1999); Student's degrees of freedom are those of the effective number of
labels, since a queue by disagreement gives few of them much weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trajudge.eval.labelling.prediction import DrawnLabels
from trajudge.stats.intervals import Bools, Floats, Interval, Ints, t_quantile

UNSEEN_LABELS = 2.0
"""The least variance is that of as many labels that are wrong: nearly the upper limit of the errors
that the exact interval allows where none was seen. By half a label 88 % of the intervals of
precisions near 1 cover."""
TOO_FEW = "fewer than two labels among what it accepts"


class PrecisionEstimates(NamedTuple):
    """Intervals (J,) of every judge's precision: with the predictions' help, and by labels alone;
    ``labels`` (J,) is how many lie among what it accepts."""

    corrected: Interval
    labels_only: Interval
    labels: Ints


def estimate_precision(
    drawn: DrawnLabels, predicted: Floats, accepted: Bools, confidence: float = 0.95
) -> PrecisionEstimates:
    """Estimate from the labels that were drawn; ``predicted`` (N,) and ``accepted`` (N, J) are of
    the whole frame."""
    labelled, labels, chances = drawn
    inside = accepted[labelled].astype(float)
    sizes = accepted.sum(axis=0).astype(float)
    counts = accepted[labelled].sum(axis=0)
    y = labels.astype(float)
    weights = 1 / chances
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = (y - predicted[labelled])[:, None] * inside
        base = predicted @ accepted / sizes
        corrected = base + weights @ residuals / sizes
        variance = _variance(residuals, chances) / sizes**2
        own = weights @ inside
        mean = (weights * y) @ inside / own
        deviations = (y[:, None] - mean) * inside
        own_variance = _variance(deviations, chances) / own**2
    df = np.maximum(_effective(inside / chances[:, None]) - 1, 1.0)
    return PrecisionEstimates(
        _interval(corrected, _guarded(variance, counts, sizes), counts, df, confidence),
        _interval(mean, _guarded(own_variance, counts, sizes), counts, df, confidence),
        counts,
    )


def _effective(weights: Floats) -> Floats:
    """Effective number (J,) of the labels that a variance rests on, (Σ w²)² / Σ w⁴ of their
    ``weights`` (n, J): where few of them weigh much, those few show it."""
    squares = weights**2
    return np.asarray(squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), 1e-300))


def _variance(values: Floats, chances: Floats) -> Floats:
    """Estimate the variance (J,) of the weighted totals of ``values`` (n, J)."""
    rest = 1 - chances
    if len(chances) < 2 or not rest.sum() > 0:
        return np.zeros(values.shape[1])
    share = rest / rest.sum()
    expanded = values / chances[:, None]
    centred = np.nan_to_num(expanded - share @ expanded)
    return np.asarray(rest @ centred**2 / (1 - share @ share))


def _guarded(variance: Floats, counts: Ints, sizes: Floats) -> Floats:
    """Add the variance of half a label that is wrong beyond those that were seen, and bound it by
    that of ``UNSEEN_LABELS``: labels that show no error do not prove that there is none. Neither
    applies where everything is labelled."""
    with np.errstate(divide="ignore", invalid="ignore"):
        open_part = np.clip(1 - counts / sizes, 0, 1)
        one = open_part / np.maximum(counts, 1) ** 2
        return np.asarray(np.maximum(variance + 0.5 * one, UNSEEN_LABELS * one))


def _interval(
    estimate: Floats, variance: Floats, counts: Ints, df: Floats, confidence: float
) -> Interval:
    half = t_quantile(confidence, df) * np.sqrt(variance)
    usable = counts >= 2
    low, high = (
        np.where(usable, np.clip(end, 0, 1), np.nan) for end in (estimate - half, estimate + half)
    )
    notes = () if usable.all() else (TOO_FEW,)
    return Interval(np.clip(estimate, 0, 1), low, high, confidence, notes)
