"""Metrics of predictions against labels: four counts, and what follows from them."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trajudge.trajectories.model import Record


class Counts(Record):
    """The confusion matrix of one judge on one label. Rates are fractions; None where the
    denominator is zero: not defined is not zero."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0

    @property
    def n(self) -> int:
        """Trajectories counted."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def positives(self) -> int:
        """Trajectories that the expert labelled positive."""
        return self.tp + self.fn

    @property
    def accepted(self) -> int:
        """Trajectories that the judge called positive: precision's denominator."""
        return self.tp + self.fp


def count(labels: ArrayLike, predictions: ArrayLike) -> Counts:
    """Count the confusions of two boolean arrays of one shape (n,), labels first."""
    label = np.asarray(labels, dtype=bool)
    predicted = np.asarray(predictions, dtype=bool)
    if label.shape != predicted.shape:
        raise ValueError(f"labels have shape {label.shape}, predictions {predicted.shape}")
    return Counts(
        tp=int(np.sum(label & predicted)),
        fp=int(np.sum(~label & predicted)),
        fn=int(np.sum(label & ~predicted)),
        tn=int(np.sum(~label & ~predicted)),
    )


def ratio(part: int, whole: int) -> float | None:
    """``part / whole``; None if ``whole`` is zero."""
    return part / whole if whole else None


def precision(counts: Counts) -> float | None:
    """Share of the accepted that are positive."""
    return ratio(counts.tp, counts.accepted)


def recall(counts: Counts) -> float | None:
    """Share of the positives that are accepted."""
    return ratio(counts.tp, counts.positives)


def f1(counts: Counts) -> float | None:
    """Harmonic mean of precision and recall: 2 tp / (2 tp + fp + fn)."""
    return ratio(2 * counts.tp, 2 * counts.tp + counts.fp + counts.fn)


def accuracy(counts: Counts) -> float | None:
    """Share of equal verdicts."""
    return ratio(counts.tp + counts.tn, counts.n)


def npv(counts: Counts) -> float | None:
    """Negative predictive value: share of the rejected that are negative."""
    return ratio(counts.tn, counts.tn + counts.fn)


def tnr(counts: Counts) -> float | None:
    """Compute the true negative rate: the share of the negatives that are rejected."""
    return ratio(counts.tn, counts.tn + counts.fp)


class VerdictRates(NamedTuple):
    """The rates that follow from four counts; None where undefined."""

    precision: float | None
    recall: float | None
    f1: float | None
    accuracy: float | None
    npv: float | None
    tnr: float | None

    @classmethod
    def of(cls, counts: Counts) -> VerdictRates:
        return cls(*(rate(counts) for rate in (precision, recall, f1, accuracy, npv, tnr)))


def kappa(counts: Counts) -> float | None:
    """Cohen's kappa between judge and expert, in its closed form for two classes."""
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, counts.tn
    return ratio(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


def mcc(counts: Counts) -> float | None:
    """Matthews' correlation coefficient; None where judge or expert gave one value throughout."""
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, counts.tn
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / sqrt(margins) if margins else None
