"""Scores with their intervals: Wilson's for proportions, a bootstrap over tasks for the rest.

Judges that were scored on the same tasks share the resamples, so a judge's digits do not depend
on which others stand beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eval.observations import Observations
from eval.scores import SCORE_RATES, Limits, Rate, Score, ScoreRate
from eval.stats.binomial import wilson
from eval.stats.cluster_bootstrap import (
    Clusters,
    Statistic,
    cluster_bootstrap,
    sum_clusters,
)
from eval.stats.confusion import confusion_columns, confusion_statistic
from eval.stats.interval import Interval
from eval.stats.score_metrics import score_columns, score_statistic

DEGENERATE = "every resample gives the same value (degenerate): no interval"
# Replicates are computed in float32.
_ROUNDING = 1e-6
_PROPORTIONS: tuple[Rate, ...] = ("precision", "recall", "accuracy", "npv", "tnr")
_BOOTSTRAPPED: tuple[Rate, ...] = ("f1", "kappa", "mcc")


class Scored(NamedTuple):
    """A Score and the observations that it was computed from; ``missing_negative`` of them
    without a verdict, by the paper's protocol."""

    score: Score
    seen: Observations
    missing_negative: int


@dataclass(frozen=True)
class Bootstrap:
    """How many resamples (0: no bootstrap), and from which seed."""

    resamples: int = 2_000
    seed: int = 0

    def interval(self, clusters: Clusters, statistic: Statistic) -> Interval:
        """The statistic of the clusters; without a resample its ends are of no use."""
        rng = np.random.default_rng(self.seed)
        return cluster_bootstrap(clusters, statistic, rng, n_resamples=max(1, self.resamples))


@dataclass
class _Told:
    """What is said of one score: limits, and what of it is degenerate."""

    limits: dict[Rate | ScoreRate, Limits]
    degenerate: list[Rate | ScoreRate]

    def add(self, name: Rate | ScoreRate, low: float, high: float) -> None:
        """Percentiles of the bootstrap; nan where there are none."""
        if is_degenerate(low, high):
            self.degenerate.append(name)
        elif not np.isnan(low):
            self.limits[name] = (float(low), float(high))


def is_degenerate(low: float, high: float) -> bool:
    """Whether the percentiles are one value, to the digits that the resamples are computed in."""
    return bool(high - low <= _ROUNDING)


def with_intervals(scored: Sequence[Scored], bootstrap: Bootstrap) -> list[Score]:
    """The scores in order, each with all intervals that are defined."""
    told = [_Told(limits, []) for limits in _proportions(scored)]
    together: dict[bytes, list[int]] = defaultdict(list)
    for index, item in enumerate(scored):
        if len(item.seen) and bootstrap.resamples:
            together[trajectories_of(item.seen)].append(index)
    for members in together.values():
        _bootstrap([scored[index] for index in members], [told[i] for i in members], bootstrap)
    rates = [_score_rates(item, told[i], bootstrap) for i, item in enumerate(scored)]
    return [
        item.score.model_copy(
            update={
                **rates[i],
                "intervals": told[i].limits,
                "degenerate": tuple(told[i].degenerate),
                "tasks": _tasks(item.seen),
            }
        )
        for i, item in enumerate(scored)
    ]


def _tasks(seen: Observations) -> int:
    return int(np.count_nonzero(np.bincount(seen.task)))


def trajectories_of(seen: Observations) -> bytes:
    """Equal for observations of the same trajectories, of one reference."""
    return seen.place.tobytes()


def _proportions(scored: Sequence[Scored]) -> list[dict[Rate | ScoreRate, Limits]]:
    """Wilson's limits of every single proportion that is defined; all scores in one go."""
    parts = np.array([_parts(item) for item in scored]).reshape(-1, len(_PROPORTIONS), 2)
    interval = wilson(parts[..., 0], parts[..., 1])
    ends = np.stack([interval.low, interval.high], axis=-1).tolist()
    defined = (parts[..., 1] > 0).tolist()
    return [
        {
            name: (limits[0], limits[1])
            for name, limits, exists in zip(_PROPORTIONS, row, told, strict=True)
            if exists
        }
        for row, told in zip(ends, defined, strict=True)
    ]


def _parts(item: Scored) -> list[tuple[int, int]]:
    """Successes and trials of each of _PROPORTIONS."""
    counts = item.score.counts
    return [
        (counts.tp, counts.accepted),
        (counts.tp, counts.positives),
        (counts.tp + counts.tn, item.score.n),
        (counts.tn, counts.tn + counts.fn),
        (counts.tn, counts.tn + counts.fp + item.missing_negative),
    ]


def _bootstrap(items: Sequence[Scored], told: Sequence[_Told], bootstrap: Bootstrap) -> None:
    """Add the intervals of functions of counts, of scores on the same trajectories."""
    seen = items[0].seen
    columns = confusion_columns(
        np.column_stack([item.seen.verdict == 1 for item in items]),
        np.column_stack([item.seen.truth for item in items]),
        np.column_stack([item.seen.verdict >= 0 for item in items]),
    )
    clusters = sum_clusters(columns, seen.task, seen.benchmark)
    interval = bootstrap.interval(clusters, confusion_statistic(*_BOOTSTRAPPED))
    shape = (len(_BOOTSTRAPPED), len(items))
    low, high = interval.low.reshape(shape), interval.high.reshape(shape)
    for j, (item, told_here) in enumerate(zip(items, told, strict=True)):
        for i, name in enumerate(_BOOTSTRAPPED):
            told_here.add(name, low[i, j], high[i, j])
        if "f1" in told_here.degenerate:
            told_here.limits["f1"] = _f1_by_tasks(item.seen)


def _f1_by_tasks(seen: Observations) -> Limits:
    """Limits of an F1 that no resample moves: F1 = 2 J / (1 + J) with J = tp / (tp + fp + fn), a
    single proportion, whose Wilson limits (tasks as the trials) F1 takes over."""
    said = seen.verdict == 1
    either = (said | seen.truth) & (seen.verdict >= 0)
    tasks = len(np.unique(seen.task[either]))
    share = (said & seen.truth)[either].mean()
    limits = wilson(share * tasks, tasks)
    low, high = (2 * end / (1 + end) for end in (float(limits.low), float(limits.high)))
    return low, high


def _score_rates(item: Scored, told: _Told, bootstrap: Bootstrap) -> dict[str, object]:
    """The metrics of the judge's scores, their intervals put into ``told``."""
    has_score = ~np.isnan(item.seen.score)
    if item.score.baseline or not has_score.any():
        return {}
    seen = item.seen.where(has_score)
    columns = score_columns(seen.score, seen.truth)
    clusters = sum_clusters(columns, seen.task, seen.benchmark)
    interval = bootstrap.interval(clusters, score_statistic())
    rates: dict[str, object] = {"scored": len(seen)}
    for i, name in enumerate(SCORE_RATES):
        if not np.isnan(interval.estimate[i]):
            rates[name] = float(interval.estimate[i])
        if bootstrap.resamples:
            told.add(name, interval.low[i], interval.high[i])
    return rates
