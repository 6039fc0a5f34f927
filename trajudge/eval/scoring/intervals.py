"""Scores with their intervals, all of one kind: 95 % limits that take tasks for the units.

Judges that were scored on the same trajectories are computed together; the digits do not depend on
which others stand beside a judge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import NamedTuple

import numpy as np

from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import RATES, SCORE_RATES, Limits, Rate, Score, ScoreRate
from trajudge.stats.intervals import (
    BIASED,
    NOTHING_VARIES,
    ONE_TASK,
    clustered_scores,
    score_columns,
    sum_clusters,
    verdict_columns,
    verdict_intervals,
)


class ScoredObservations(NamedTuple):
    """A Score and the observations that it was computed from."""

    score: Score
    observations: Observations


@dataclass(frozen=True)
class Bootstrap:
    """What the command line asks for: without resamples judges are not compared."""

    resamples: int = 2_000
    seed: int = 0


@dataclass
class _Intervals:
    """What is known of one score's metrics beside their values."""

    limits: dict[Rate | ScoreRate, Limits] = field(default_factory=dict)
    reasons: dict[Rate | ScoreRate, str] = field(default_factory=dict)
    design_effects: dict[Rate, float] = field(default_factory=dict)


def with_intervals(scored: Sequence[ScoredObservations]) -> list[Score]:
    """Add to every score all intervals that are defined, in order."""
    intervals = [_Intervals() for _ in scored]
    together: dict[bytes, list[int]] = defaultdict(list)
    for index, item in enumerate(scored):
        if len(item.observations):
            together[item.observations.trajectories].append(index)
    tasks = [0] * len(scored)
    for members in together.values():
        _of_verdicts([scored[index] for index in members], [intervals[i] for i in members])
        count = _tasks(scored[members[0]].observations)
        for index in members:
            tasks[index] = count
    rates = [_of_scores(item, intervals[i]) for i, item in enumerate(scored)]
    return [
        item.score.model_copy(
            update={
                **rates[i],
                "intervals": intervals[i].limits,
                "no_interval": intervals[i].reasons,
                "design_effects": intervals[i].design_effects,
                "degenerate": tuple(
                    name
                    for name, reason in intervals[i].reasons.items()
                    if reason == NOTHING_VARIES
                ),
                "tasks": tasks[i],
            }
        )
        for i, item in enumerate(scored)
    ]


def _tasks(observations: Observations) -> int:
    return int(np.count_nonzero(np.bincount(observations.task)))


def _of_verdicts(items: Sequence[ScoredObservations], intervals: Sequence[_Intervals]) -> None:
    """Add the intervals of all metrics of verdicts, of scores on the same trajectories; those that
    share their observations, as the baseline's do, are computed once."""
    place: dict[int, int] = {}
    column = [place.setdefault(id(item.observations), len(place)) for item in items]
    distinct = [*{id(item.observations): item.observations for item in items}.values()]
    if len(items) > len(distinct) == 1:  # numpy adds up a row alone in another order than several
        distinct *= 2
    observations = items[0].observations
    columns = verdict_columns(
        np.column_stack([each.predictions for each in distinct]),
        np.column_stack([each.labels for each in distinct]),
    ).reshape(len(observations), -1)
    counts, squares, sizes = observations.sum_by_task(columns, len(distinct))
    limits = verdict_intervals(counts, sizes, squares=squares)
    for name in RATES:
        limited = limits[name]
        low, high, reason = limited.low.tolist(), limited.high.tolist(), limited.reason.tolist()
        deff = None if limited.design_effect is None else limited.design_effect.tolist()
        for j, here in zip(column, intervals, strict=True):
            if reason[j]:
                here.reasons[name] = reason[j]
            elif not isnan(low[j]):
                here.limits[name] = (low[j], high[j])
                if deff is not None:
                    here.design_effects[name] = deff[j]


def _of_scores(item: ScoredObservations, intervals: _Intervals) -> dict[str, object]:
    """Compute the metrics of the judge's scores and put their intervals into ``intervals``."""
    has_score = ~np.isnan(item.observations.scores)
    if item.score.baseline or not has_score.any():
        return {}
    observations = item.observations.where(has_score)
    columns = score_columns(observations.scores, observations.labels)
    if (weights := observations.weights) is not None:
        columns = columns * weights[:, None]
    clusters = sum_clusters(
        columns,
        observations.task,
        observations.benchmark,
    )
    interval = clustered_scores(clusters.sums, clusters.stratum_sizes)
    rates: dict[str, object] = {"scored": len(observations)}
    for name, value, low, high in zip(
        SCORE_RATES, interval.estimate, interval.low, interval.high, strict=True
    ):
        if np.isnan(value):
            continue
        rates[name] = float(value)
        if np.isnan(low):
            intervals.reasons[name] = BIASED if name == "calibration_error" else ONE_TASK
        else:
            intervals.limits[name] = (float(low), float(high))
    return rates
