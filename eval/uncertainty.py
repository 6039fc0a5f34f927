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


def with_intervals(scored: Sequence[Scored], bootstrap: Bootstrap) -> list[Score]:
    """The scores in order, each with all intervals that are defined."""
    found: list[dict[Rate | ScoreRate, Limits]] = [_proportions(item) for item in scored]
    together: dict[bytes, list[int]] = defaultdict(list)
    for index, item in enumerate(scored):
        if len(item.seen) and bootstrap.resamples:
            together[trajectories_of(item.seen)].append(index)
    for members in together.values():
        _bootstrap([scored[index] for index in members], [found[i] for i in members], bootstrap)
    rates = [_score_rates(item, found[i], bootstrap) for i, item in enumerate(scored)]
    return [
        item.score.model_copy(
            update={**rates[i], "intervals": found[i], "tasks": _tasks(item.seen)}
        )
        for i, item in enumerate(scored)
    ]


def _tasks(seen: Observations) -> int:
    return len(set(zip(seen.benchmark.tolist(), seen.task.tolist(), strict=True)))


def trajectories_of(seen: Observations) -> bytes:
    """Equal for observations of the same trajectories."""
    return "\n".join([*seen.benchmark, *seen.task, *seen.agent]).encode()


def _proportions(item: Scored) -> dict[Rate | ScoreRate, Limits]:
    counts, n = item.score.counts, item.score.n
    negatives = counts.tn + counts.fp + item.missing_negative
    parts: dict[Rate, tuple[int, int]] = {
        "precision": (counts.tp, counts.accepted),
        "recall": (counts.tp, counts.positives),
        "accuracy": (counts.tp + counts.tn, n),
        "npv": (counts.tn, counts.tn + counts.fn),
        "tnr": (counts.tn, negatives),
    }
    successes, trials = zip(*parts.values(), strict=True)
    interval = wilson(successes, trials)
    return {
        name: (float(interval.low[i]), float(interval.high[i]))
        for i, name in enumerate(parts)
        if trials[i]
    }


def _bootstrap(
    items: Sequence[Scored],
    found: Sequence[dict[Rate | ScoreRate, Limits]],
    bootstrap: Bootstrap,
) -> None:
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
    for j, limits in enumerate(found):
        for i, name in enumerate(_BOOTSTRAPPED):
            if not np.isnan(low[i, j]):
                limits[name] = (float(low[i, j]), float(high[i, j]))


def _score_rates(
    item: Scored, found: dict[Rate | ScoreRate, Limits], bootstrap: Bootstrap
) -> dict[str, object]:
    """The metrics of the judge's scores, their intervals put into ``found``."""
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
        if bootstrap.resamples and not np.isnan(interval.low[i]):
            found[name] = (float(interval.low[i]), float(interval.high[i]))
    return rates
