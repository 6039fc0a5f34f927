"""The metrics of judges, one row each. Fields of a Score, columns of results.csv, tables and notes
come from ``METRICS``: a new metric is a new row.

A row takes the confusion counts TP, FP, FN, TN, and positives and negatives whose judgment is
missing under AgentRewardBench's protocol, which leaves them in accuracy and TNR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajudge.stats.intervals import (
    ONE_TASK,
    UNBOUNDED,
    Bools,
    Floats,
    Interval,
    Ints,
    clustered_agreement,
    clustered_differences,
    clustered_rates,
)

TP, FP, FN, TN, MISSING_TRUE, MISSING_FALSE = range(6)

FEWEST = 10

FEW_OF_A_CLASS = (
    f"fewer than {FEWEST} trajectories of one class: no interval of κ or MCC covers there"
)

NOTHING_VARIES = "judge and expert agree (or differ) on every trajectory: nothing varies"


@dataclass(frozen=True, eq=False)
class Limited:
    """Ends of one metric (...), ``nan`` where it has none; ``reason`` says why (...), empty where
    the metric itself is undefined. ``design_effect`` (...) is None for what is no share of
    trials."""

    low: Floats
    high: Floats
    reason: NDArray[np.object_]
    design_effect: Floats | None = None


Formula = Callable[[Floats, Floats, Floats, Floats], Floats]

"""TP, FP, FN and TN to the metric, all (...)."""

LimitsOf = Callable[[Floats, Ints, Floats | None], Limited]

"""Counts (..., C, 6) of C tasks, the sizes of their strata, and the sums of squared weights
(..., C, 6) of weighted trajectories, to 95 % limits (...)."""


@dataclass(frozen=True)
class Metric:
    """One metric of verdicts, or (``table`` "scores") of the scores that judges give.

    ``table`` is where the full tables show it. A share is ``hits`` over ``trials``, cells of the
    counts, mapped by ``transform``, an increasing function; what is no share has a ``formula`` and
    ``limits`` of its own. A metric is shown in percent, or as a coefficient with two digits.
    """

    name: str
    title: str
    table: Literal["labels", "further", "errors", "scores"]
    hits: tuple[int, ...] = ()
    trials: tuple[int, ...] = ()
    transform: Callable[[Floats], Floats] = np.asarray
    formula: Formula | None = None
    limits: LimitsOf | None = None
    in_percent: bool = True

    def value(self, counts: Floats) -> Floats:
        """Compute the metric (...) of counts (..., 6); ``nan`` where a denominator is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.formula is not None:
                return self.formula(*np.moveaxis(counts[..., :4], -1, 0))
            return self.sum_hits(counts) / self.sum_trials(counts)

    def sum_hits(self, counts: Floats) -> Floats:
        """Add up the hits (...) of counts (..., 6)."""
        return np.asarray(counts[..., list(self.hits)].sum(axis=-1))

    def sum_trials(self, counts: Floats) -> Floats:
        """Add up the trials (...) of counts (..., 6)."""
        return np.asarray(counts[..., list(self.trials)].sum(axis=-1))


def f1_from_jaccard(jaccard: Floats) -> Floats:
    """F1 of TP / (TP + FP + FN), of which it is an increasing function."""
    return np.asarray(2 * jaccard / (1 + jaccard))


def _f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return 2 * tp / (2 * tp + fp + fn)


def _kappa(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    by_chance = (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)
    return 2 * (tp * tn - fp * fn) / by_chance


def _mcc(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return np.asarray((tp * tn - fp * fn) / np.sqrt(margins))


def _balanced_accuracy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def verdict_limits(
    counts: Floats, sizes: Ints, squares: Floats | None = None
) -> dict[str, Limited]:
    """Compute the limits (...) of all metrics of verdicts; arguments as ``LimitsOf``."""
    shares = [metric for metric in VERDICT_METRICS if metric.limits is None]
    hits = np.stack([metric.sum_hits(counts) for metric in shares])
    trials = np.stack([metric.sum_trials(counts) for metric in shares])
    of_trials = None
    if squares is not None:
        of_trials = np.stack([metric.sum_trials(squares) for metric in shares])
    rates = clustered_rates(hits, trials, sizes, squares=of_trials)
    limits = {}
    for place, metric in enumerate(shares):
        low, high = metric.transform(
            np.stack([rates.interval.low[place], rates.interval.high[place]])
        )
        known = [(np.isnan(rates.interval.estimate[place]), "")]
        reason = _reasons(low, known, ONE_TASK)
        limits[metric.name] = Limited(low, high, reason, rates.design_effect[place])
    for metric in VERDICT_METRICS:
        if metric.limits is not None:
            limits[metric.name] = metric.limits(counts, sizes, squares)
    return limits


def _balanced_accuracy_limits(counts: Floats, sizes: Ints, squares: Floats | None) -> Limited:
    """Half of one plus recall less FPR."""
    recall, fpr = METRICS["recall"], METRICS["fpr"]
    interval = clustered_differences(
        np.stack([recall.sum_hits(counts), fpr.sum_hits(counts)]),
        np.stack([recall.sum_trials(counts), fpr.sum_trials(counts)]),
        sizes,
        squares=None
        if squares is None
        else np.stack([recall.sum_trials(squares), fpr.sum_trials(squares)]),
        with_p_value=False,
    ).interval
    low, high = (1 + interval.low) / 2, (1 + interval.high) / 2
    return Limited(low, high, _reasons(low, [(np.isnan(interval.estimate), "")], ONE_TASK))


def _kappa_limits(counts: Floats, sizes: Ints, squares: Floats | None) -> Limited:
    return _coefficient_limits(clustered_agreement(counts[..., :4], sizes)[0], counts, squares)


def _mcc_limits(counts: Floats, sizes: Ints, squares: Floats | None) -> Limited:
    return _coefficient_limits(clustered_agreement(counts[..., :4], sizes)[1], counts, squares)


def _coefficient_limits(interval: Interval, counts: Floats, squares: Floats | None) -> Limited:
    positives = _size(counts, squares, [TP, FN])
    negatives = _size(counts, squares, [FP, TN])
    total = counts.sum(axis=-2)
    wrong = total[..., FP] + total[..., FN]
    known = [
        (np.isnan(interval.estimate), ""),
        (np.minimum(positives, negatives) < FEWEST, FEW_OF_A_CLASS),
        ((wrong == 0) | (wrong == total[..., :4].sum(axis=-1)), NOTHING_VARIES),
    ]
    reason = _reasons(interval.low, known, UNBOUNDED)
    low, high = np.where(reason != "", np.nan, np.stack([interval.low, interval.high]))
    return Limited(low, high, reason)


def _size(counts: Floats, squares: Floats | None, cells: list[int]) -> Floats:
    """Return the number of trajectories (...) in some cells; of weighted ones the effective one."""
    size = counts[..., cells].sum(axis=(-2, -1))
    if squares is None:
        return np.asarray(size)
    return np.asarray(size**2 / np.maximum(squares[..., cells].sum(axis=(-2, -1)), 1e-300))


def _reasons(ends: Floats, reasons: list[tuple[Bools, str]], otherwise: str) -> NDArray[np.object_]:
    """Choose the first reason that applies; ``otherwise`` if none does and ends are undefined."""
    conditions, texts = zip(*reasons, strict=True)
    rest = np.where(np.isnan(ends), otherwise, "").astype(object)
    return np.asarray(np.select(conditions, texts, rest), dtype=object)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("precision", "precision", "labels", (TP,), (TP, FP)),
        Metric("recall", "recall", "further", (TP,), (TP, FN)),
        Metric("f1", "F1", "labels", (TP,), (TP, FP, FN), transform=f1_from_jaccard, formula=_f1),
        Metric("accuracy", "accuracy", "further", (TP, TN), tuple(range(6))),
        Metric("npv", "NPV", "further", (TN,), (FN, TN)),
        Metric("tnr", "TNR", "further", (TN,), (FP, TN, MISSING_FALSE)),
        Metric(
            *("kappa", "κ", "further"),
            formula=_kappa,
            limits=_kappa_limits,
            in_percent=False,
        ),
        Metric(
            *("mcc", "MCC", "further"),
            formula=_mcc,
            limits=_mcc_limits,
            in_percent=False,
        ),
        Metric(
            *("balanced_accuracy", "balanced accuracy", "errors"),
            formula=_balanced_accuracy,
            limits=_balanced_accuracy_limits,
        ),
        Metric("fpr", "FPR", "errors", (FP,), (FP, TN)),
        Metric("fnr", "FNR", "errors", (FN,), (TP, FN)),
        Metric("over_accept_share", "over-accept share", "errors", (FP,), (FP, FN)),
        # In the order of stats.intervals.clustered_scores.
        Metric("roc_auc", "ROC-AUC", "scores", in_percent=False),
        Metric("average_precision", "average precision", "scores", in_percent=False),
        Metric("brier", "Brier", "scores", in_percent=False),
        Metric("calibration_error", "calibration error", "scores", in_percent=False),
    )
}

VERDICT_METRICS = tuple(metric for metric in METRICS.values() if metric.table != "scores")

SCORE_METRICS = tuple(metric for metric in METRICS.values() if metric.table == "scores")


def count_cells(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayLike | None = None
) -> Floats:
    """Count labels in {0, 1} and predictions in {0, 1, -1 = missing}, both (n,), or add up their
    ``weights`` (n,): (6,). Raises ValueError for arrays of different shapes."""
    label, predicted = (np.asarray(array, dtype=np.int64) for array in (labels, predictions))
    if label.shape != predicted.shape:
        raise ValueError(f"labels have shape {label.shape}, predictions {predicted.shape}")
    missing_false, tn, fp, missing_true, fn, tp = np.bincount(
        3 * label + predicted + 1, weights, minlength=6
    )
    return np.array([tp, fp, fn, tn, missing_true, missing_false], dtype=float)


def agentrewardbench_rates(cells: ArrayLike) -> dict[str, float]:
    """Compute the rates of AgentRewardBench's paper from counts (6,): missing judgments leave
    precision, recall and NPV, and stay in accuracy and TNR.

    Accuracy is rounded to four digits, F1 follows from precision and recall rounded to four; the
    published digits of the others come from unrounded fractions (14 of 17 is shown as 82.4). The
    rate of nothing is 0.
    """
    tp, fp, fn, tn, _, missing_false = counts = np.asarray(cells).tolist()
    precision, recall = _fraction(tp, tp + fp), _fraction(tp, tp + fn)
    rounded = round(precision, 4), round(recall, 4)
    return {
        "precision": precision,
        "recall": recall,
        "f1": _fraction(2 * rounded[0] * rounded[1], sum(rounded)),
        "accuracy": round(_fraction(tp + tn, sum(counts)), 4),
        "npv": _fraction(tn, tn + fn),
        "tnr": _fraction(tn, tn + fp + missing_false),
    }


def agentrewardbench_mean(values: Sequence[float]) -> float:
    """Average labels, verdicts or raw rewards (not thresholded) to four digits, as the paper's
    success rates are: 0 of nothing."""
    return round(_fraction(sum(values), len(values)), 4)


def _fraction(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
