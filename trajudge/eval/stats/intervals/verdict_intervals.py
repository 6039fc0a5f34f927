"""The intervals of every metric of verdicts at once: nine rates, kappa, MCC and balanced accuracy.

F1 is a rate in disguise: F1 = 2 J / (1 + J) with J = TP / (TP + FP + FN), so it takes over J's
limits. Balanced accuracy is one, too: (1 + recall - FPR) / 2, so it takes over the limits of that
difference. Kappa and MCC have none where one class has fewer than ``FEWEST`` trajectories: no
interval was found that covers there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Bools, Floats
from trajudge.eval.stats.intervals.clustered_agreement import UNBOUNDED, clustered_agreement
from trajudge.eval.stats.intervals.clustered_differences import difference_limits
from trajudge.eval.stats.intervals.clustered_rates import ONE_TASK, clustered_rates

FEWEST = 10
FEW_OF_A_CLASS = (
    f"fewer than {FEWEST} trajectories of one class: no interval of κ or MCC covers there"
)
NOTHING_VARIES = "judge and expert agree (or differ) on every trajectory: nothing varies"

# Hits and trials of every rate among the columns TP, FP, FN, TN, and positives and negatives
# without a verdict (AgentRewardBench's protocol leaves them in accuracy and TNR).
PARTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "precision": ((0,), (0, 1)),
    "recall": ((0,), (0, 2)),
    "f1": ((0,), (0, 1, 2)),
    "accuracy": ((0, 3), (0, 1, 2, 3, 4, 5)),
    "npv": ((3,), (2, 3)),
    "tnr": ((3,), (1, 3, 5)),
    "fpr": ((1,), (1, 3)),
    "fnr": ((2,), (0, 2)),
    "over_accept_share": ((1,), (1, 2)),
}
COEFFICIENTS = ("kappa", "mcc")


@dataclass(frozen=True, eq=False)
class Limited:
    """Ends of one metric (...), ``nan`` where it has none; ``reason`` says why (...), empty where
    the metric itself is undefined. ``design_effect`` (...) is None for what is no share of
    trials."""

    low: Floats
    high: Floats
    reason: np.ndarray
    design_effect: Floats | None = None


def verdict_columns(verdicts: ArrayLike, truth: ArrayLike) -> Bools:
    """Columns (N, G, 6) to sum over clusters: ``verdicts`` (N, G) in {1, 0, -1 = missing}
    beside ``truth`` (N, G)."""
    predicted, right = np.asarray(verdicts), np.asarray(truth, dtype=bool)
    yes, no, none = predicted == 1, predicted == 0, predicted < 0
    cells = [yes & right, yes & ~right, no & right, no & ~right, none & right, none & ~right]
    return np.stack(cells, axis=-1)


def verdict_intervals(
    counts: ArrayLike,
    stratum_sizes: ArrayLike,
    confidence: float = 0.95,
    squares: Floats | None = None,
) -> dict[str, Limited]:
    """Compute every metric's limits from counts (..., C, 6) of C tasks, strata in order; of
    weighted trajectories these are sums of weights, and ``squares`` (..., C, 6) those of their
    squares."""
    cells = np.asarray(counts, dtype=float)
    rates = {name: _rate(name, cells, stratum_sizes, confidence, squares) for name in PARTS}
    rates["balanced_accuracy"] = _balanced_accuracy(cells, stratum_sizes, confidence, squares)
    intervals = clustered_agreement(cells[..., :4], stratum_sizes, confidence)
    total = cells.sum(axis=-2)
    classes = ([0, 2], [1, 3])
    few = np.minimum(*(_class_size(cells, squares, part) for part in classes)) < FEWEST
    wrong = total[..., 1] + total[..., 2]
    still = (wrong == 0) | (wrong == total[..., :4].sum(axis=-1))
    for name, interval in zip(COEFFICIENTS, intervals, strict=True):
        defined = ~np.isnan(interval.estimate)
        known = [(~defined, ""), (few, FEW_OF_A_CLASS), (still, NOTHING_VARIES)]
        reason = _choose(interval.low, known, UNBOUNDED)
        none = reason != ""
        low, high = (np.where(none, np.nan, end) for end in (interval.low, interval.high))
        rates[name] = Limited(low, high, reason)
    return rates


def _class_size(cells: Floats, squares: Floats | None, part: list[int]) -> Floats:
    """Return the number of trajectories (...) in some of the cells; of weighted ones the effective
    number."""
    size = cells[..., part].sum(axis=(-2, -1))
    if squares is None:
        return np.asarray(size)
    return np.asarray(size**2 / np.maximum(squares[..., part].sum(axis=(-2, -1)), 1e-300))


def _rate(
    name: str, cells: Floats, sizes: ArrayLike, confidence: float, squares: Floats | None
) -> Limited:
    hits, trials = (cells[..., list(part)].sum(axis=-1) for part in PARTS[name])
    of_trials = None if squares is None else squares[..., list(PARTS[name][1])].sum(axis=-1)
    rates = clustered_rates(hits, trials, sizes, confidence, of_trials)
    low, high = rates.interval.low, rates.interval.high
    if name == "f1":
        low, high = 2 * low / (1 + low), 2 * high / (1 + high)
    undefined = np.isnan(rates.interval.estimate)
    reason = _choose(low, [(undefined, "")], ONE_TASK)
    return Limited(low, high, reason, rates.design_effect)


def _balanced_accuracy(
    cells: Floats, sizes: ArrayLike, confidence: float, squares: Floats | None
) -> Limited:
    parts = [PARTS[name] for name in ("recall", "fpr")]
    hits, trials = (
        np.stack([cells[..., list(part[side])].sum(axis=-1) for part in parts]) for side in (0, 1)
    )
    of_trials = None
    if squares is not None:
        of_trials = np.stack([squares[..., list(part[1])].sum(axis=-1) for part in parts])
    interval = difference_limits(hits, trials, sizes, confidence, squares=of_trials)
    low, high = (1 + interval.low) / 2, (1 + interval.high) / 2
    undefined = np.isnan(interval.estimate)
    return Limited(low, high, _choose(low, [(undefined, "")], ONE_TASK))


def _choose(ends: Floats, reasons: list[tuple[Bools, str]], otherwise: str) -> np.ndarray:
    """Choose the first reason that applies; ``otherwise`` if none does and ends are undefined."""
    conditions = [condition for condition, _ in reasons]
    texts = [np.array(text, dtype=object) for _, text in reasons]
    rest = np.where(np.isnan(ends), otherwise, "").astype(object)
    return np.asarray(np.select(conditions, texts, rest), dtype=object)
