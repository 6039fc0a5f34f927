"""AgentRewardBench's own arithmetic (paper section 4 and its published result files).

It differs from ``eval.scoring.metrics`` in three ways that move published digits: a judgment
without a valid response is -1, neither positive nor negative; rates are rounded on the way; 0/0 is
0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.scoring.metrics import Counts
from trajudge.trajectories.model import Record, checked

MISSING = -1


class ProtocolCounts(Record):
    """Confusion counts, with the trajectories whose judgment is missing set apart by label."""

    counts: Counts
    missing_positive: int = 0
    missing_negative: int = 0

    @property
    def n(self) -> int:
        """Trajectories counted, missing judgments included."""
        return self.counts.n + self.missing_positive + self.missing_negative


class ProtocolRates(Record):
    """Fractions; ``percent`` gives what the paper's tables show. Accuracy is rounded to four
    digits, F1 follows from precision and recall rounded to four; the published digits of the
    others come from unrounded fractions (14 of 17 is shown as 82.4)."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    npv: float
    tnr: float


def protocol_counts(labels: ArrayLike, predictions: ArrayLike) -> ProtocolCounts:
    """Count over labels in {0, 1} and predictions in {0, 1, -1 = missing}, both of shape (n,)."""
    label, predicted = (np.asarray(array, dtype=np.int8) for array in (labels, predictions))
    if label.shape != predicted.shape:
        raise ValueError(f"labels have shape {label.shape}, predictions {predicted.shape}")
    cells = np.bincount(3 * label + predicted + 1, minlength=6).tolist()
    missing_negative, tn, fp, missing_positive, fn, tp = cells
    fields = {
        "counts": checked(Counts, {"tp": tp, "fp": fp, "fn": fn, "tn": tn}),
        "missing_positive": missing_positive,
        "missing_negative": missing_negative,
    }
    return checked(ProtocolCounts, fields)


def protocol_rates(protocol: ProtocolCounts) -> ProtocolRates:
    """Missing judgments leave precision, recall and NPV, and stay in accuracy and TNR."""
    tp, fp, fn, tn = protocol.counts.tp, protocol.counts.fp, protocol.counts.fn, protocol.counts.tn
    precision, recall = _share(tp, tp + fp), _share(tp, tp + fn)
    rounded = round(precision, 4), round(recall, 4)
    both = sum(rounded)
    return ProtocolRates(
        accuracy=round(_share(tp + tn, protocol.n), 4),
        precision=precision,
        recall=recall,
        f1=2 * rounded[0] * rounded[1] / both if both else 0.0,
        npv=_share(tn, tn + fn),
        tnr=_share(tn, tn + fp + protocol.missing_negative),
    )


def percent(rate: float) -> float:
    """As the paper's tables show a fraction: percent with one digit."""
    return round(100 * rate, 1)


def success_rate(values: Sequence[float]) -> float:
    """Mean to four digits, 0 of nothing: over labels (expert), verdicts (judge) or the raw
    ``cum_reward`` (rule-based, not thresholded)."""
    return round(_share(sum(values), len(values)), 4)


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 0.0
