"""Metrics of predictions against labels: four counts, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Bools, Floats
from trajudge.eval.stats.judging.confusion import METRICS
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


class WeightedCounts(NamedTuple):
    """The confusion matrix of weighted trajectories: sums of their weights."""

    tp: float
    fp: float
    fn: float
    tn: float


def weighted_counts(labels: Bools, predictions: ArrayLike, weights: Floats) -> WeightedCounts:
    """Add up the ``weights`` (N,) of ``predictions`` (N,) of 1 or 0 beside ``labels`` (N,)."""
    accepted = np.asarray(predictions) == 1
    cells = (accepted & labels, accepted & ~labels, ~accepted & labels, ~accepted & ~labels)
    return WeightedCounts(*(float(weights[cell].sum()) for cell in cells))


def rate(name: str, counts: Counts) -> float | None:
    """Compute a metric of ``eval.stats.judging.confusion.METRICS``; None where undefined."""
    return rates((name,), [counts])[0][0]


def rates(
    names: Iterable[str], counts: Sequence[Counts | WeightedCounts]
) -> list[tuple[float | None, ...]]:
    """Compute several metrics of each of ``counts``, as ``rate`` does one."""
    cells = np.array([(c.tp, c.fp, c.fn, c.tn) for c in counts], dtype=float).reshape(-1, 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = [METRICS[name](*cells.T).tolist() for name in names]
    return [
        tuple(None if isnan(value) else value for value in row)
        for row in zip(*columns, strict=True)
    ]


class VerdictRates(NamedTuple):
    """The rates that follow from four counts; None where undefined."""

    precision: float | None
    recall: float | None
    f1: float | None
    accuracy: float | None
    npv: float | None
    tnr: float | None
