"""Confusion counts of many judges at once, and the metrics that are functions of them.

A metric whose denominator is zero is undefined, and is ``nan`` here, never 0: a judge that
accepts nothing has no precision. Counts lie in blocks of G judges: TP | FP | FN | TN, of which
precision, recall and F1 read the first three; leaving TN out spares a quarter of the sums.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Bools, Floats
from trajudge.eval.stats.intervals.cluster_bootstrap import Statistic

Metric = Callable[[Floats, Floats, Floats, Floats], Floats]


def confusion_columns(
    verdicts: ArrayLike, truth: ArrayLike, counted: ArrayLike | None = None, *, blocks: int = 4
) -> Floats:
    """0/1 columns (N, blocks * G) to sum over clusters, from N trajectories and G judges.

    ``verdicts`` is bool (N, G); ``truth`` is bool (N,) or (N, G); where ``counted`` (N, G) is
    False the pair enters no count (a failed judgment under the policy "exclude").
    """
    says = _bools(verdicts)
    right = _bools(truth)
    right = np.broadcast_to(right[:, None] if right.ndim < says.ndim else right, says.shape)
    use = np.ones(says.shape, bool) if counted is None else _bools(counted)
    cells = [says & right, says & ~right, ~says & right, ~says & ~right]
    return np.concatenate([cell & use for cell in cells[:blocks]], axis=1).astype(float)


def precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fp)


def recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fn)


def f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return 2 * tp / (2 * tp + fp + fn)


def accuracy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return (tp + tn) / (tp + fp + fn + tn)


def negative_predictive_value(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tn / (tn + fn)


def true_negative_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tn / (tn + fp)


def cohen_kappa(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    by_chance = (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)
    return 2 * (tp * tn - fp * fn) / by_chance


def matthews_correlation(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return np.asarray((tp * tn - fp * fn) / np.sqrt(margins))


def false_positive_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return fp / (fp + tn)


def false_negative_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return fn / (tp + fn)


def balanced_accuracy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def over_accept_share(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Compute the share of the errors that are wrong acceptances."""
    return fp / (fp + fn)


METRICS: dict[str, Metric] = {
    "precision": precision,
    "recall": recall,
    "f1": f1,
    "accuracy": accuracy,
    "npv": negative_predictive_value,
    "tnr": true_negative_rate,
    "kappa": cohen_kappa,
    "mcc": matthews_correlation,
    "balanced_accuracy": balanced_accuracy,
    "fpr": false_positive_rate,
    "fnr": false_negative_rate,
    "over_accept_share": over_accept_share,
}

WITHOUT_TRUE_NEGATIVES = {"precision", "recall", "f1"}


def confusion_statistic(*names: str, blocks: int = 4) -> Statistic:
    """Totals (..., blocks * G) to metrics (..., len(names) * G), metric by metric as named.

    Raises ValueError where three blocks are too few for a metric.
    """
    chosen = [METRICS[name] for name in names]
    if blocks < 4 and not {*names} <= WITHOUT_TRUE_NEGATIVES:
        raise ValueError(f"only {sorted(WITHOUT_TRUE_NEGATIVES)} do without true negatives")

    def statistic(totals: Floats) -> Floats:
        tp, fp, fn, *rest = np.split(totals, blocks, axis=-1)
        tn = rest[0] if rest else np.full((), np.nan, dtype=totals.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.concatenate([metric(tp, fp, fn, tn) for metric in chosen], axis=-1)

    return statistic


def _bools(values: ArrayLike) -> Bools:
    """Convert to bools. Raises ValueError unless every value is a bool, 0 or 1."""
    array = np.asarray(values)
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        raise ValueError("verdicts and labels must be 0 or 1: settle missing values first")
    return array.astype(bool)
