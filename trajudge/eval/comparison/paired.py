"""Differences between two evaluators on the same trajectories, with intervals over tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import Rate
from trajudge.eval.stats.interval import Floats
from trajudge.eval.stats.intervals.clustered_differences import clustered_differences
from trajudge.eval.stats.intervals.verdict_intervals import PARTS, verdict_columns

COMPARED: tuple[Rate, ...] = ("precision", "recall", "f1")
UNDEFINED = "one of the two is undefined: a denominator is zero"
ONE_TASK = "they share runs of one task only"
SAME = "the two say the same of every trajectory: no interval"


class Paired(NamedTuple):
    """``first - second``, its 95 % limits and p-value, None where there are none; and why."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    note: str


def paired_differences(
    evaluators: Sequence[Observations], pairs: Sequence[tuple[int, int]]
) -> dict[Rate, list[Paired]]:
    """Compare every pair of evaluators of the same trajectories, which are in one order."""
    observations = evaluators[0]
    predictions = np.column_stack([one.predictions for one in evaluators])
    labels = np.column_stack([one.labels for one in evaluators])
    columns = verdict_columns(predictions, labels).reshape(len(observations), -1)
    counts, squares, sizes = observations.sum_by_task(columns, len(evaluators))
    order = np.array(pairs, dtype=np.int64).T
    same = (predictions[:, order[0]] == predictions[:, order[1]]).all(axis=0)
    found: dict[Rate, list[Paired]] = {}
    for metric in COMPARED:
        hits, trials = (counts[..., list(part)].sum(axis=-1)[order] for part in PARTS[metric])
        transform = _f1 if metric == "f1" else np.asarray
        of_trials = None
        if squares is not None:
            of_trials = squares[..., list(PARTS[metric][1])].sum(axis=-1)[order]
        differences = clustered_differences(
            hits, trials, sizes, transform=transform, squares=of_trials
        )
        interval = differences.interval
        table = np.stack(
            [interval.estimate, interval.low, interval.high, differences.p_value], axis=-1
        )
        found[metric] = [
            _paired([None if np.isnan(x) else x for x in row], still)
            for row, still in zip(table.tolist(), same.tolist(), strict=True)
        ]
    return found


def _paired(values: list[float | None], still: bool) -> Paired:
    difference, low, high, p = values
    if difference is None:
        return Paired(None, None, None, None, UNDEFINED)
    if low is None:
        return Paired(difference, None, None, None, ONE_TASK)
    if still:
        return Paired(difference, None, None, 1.0, SAME)
    return Paired(difference, low, high, p, "")


def _f1(jaccard: Floats) -> Floats:
    return np.asarray(2 * jaccard / (1 + jaccard))
