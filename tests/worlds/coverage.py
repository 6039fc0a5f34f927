"""Count how often 95 % intervals hold the truth of worlds in which it is known.

A cell counts where the design has at least 20 positives. Next to ours stands Wilson's interval on
the raw number of trials, which takes runs of one task as independent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.worlds.cluster_designs import Design, ScoreDesign
from trajudge.eval.scoring.metrics import METRICS, VERDICT_METRICS, Limited, verdict_limits
from trajudge.stats.intervals import Floats, clustered_scores, wilson

_CHUNK_CELLS = 60_000


class Coverage(NamedTuple):
    """One metric on one design: replicates with an interval, how many cover, and the share of all
    replicates on which the metric is defined that have one."""

    metric: str
    design: str
    n: int
    covered: int
    with_interval: float

    @property
    def share(self) -> float:
        return self.covered / self.n

    @property
    def error(self) -> float:
        """Monte Carlo standard error."""
        return float(np.sqrt(self.share * (1 - self.share) / self.n))


def coverage_of_verdicts(
    design: Design, replicates: int, rng: np.random.Generator
) -> Iterator[Coverage]:
    """Of every metric whose true value is defined, and of the raw Wilson interval of the rates."""
    step = max(1, _CHUNK_CELLS // int(design.stratum_sizes.sum()))
    counted: dict[str, Floats] = defaultdict(lambda: np.zeros(3))
    truth = _metrics(design.truth)
    for start in range(0, replicates, step):
        counts = design.draw(min(step, replicates - start), rng)
        total = counts.sum(axis=-2)
        values = _metrics(total)
        ends = {name: (i.low, i.high) for name, i in _ours(counts, design).items()}
        for name in (metric.name for metric in VERDICT_METRICS if metric.trials):
            ends[f"{name}, raw Wilson"] = _raw_wilson(name, total)
        for name, (low, high) in ends.items():
            metric = name.split(",")[0]
            target = truth[metric]
            has = ~np.isnan(low)
            inside = (low - 1e-12 <= target) & (target <= high + 1e-12) & has
            defined = int((~np.isnan(values[metric])).sum())
            counted[name] += np.array([has.sum(), inside.sum(), defined])
    for name, (n, covered, defined) in counted.items():
        if n and not np.isnan(truth[name.split(",")[0]]):
            yield Coverage(name, design.name, int(n), int(covered), n / defined)


def _ours(counts: Floats, design: Design) -> dict[str, Limited]:
    whole = _six(counts)
    return verdict_limits(whole, design.stratum_sizes)


def _six(counts: Floats) -> Floats:
    """Add the two cells of missing judgments, which are empty."""
    return np.concatenate([counts, np.zeros((*counts.shape[:-1], 2))], axis=-1)


def _raw_wilson(name: str, total: Floats) -> tuple[Floats, Floats]:
    metric, whole = METRICS[name], _six(total)
    interval = wilson(metric.sum_hits(whole), metric.sum_trials(whole))
    return metric.transform(interval.low), metric.transform(interval.high)


def _metrics(total: Floats) -> dict[str, Floats]:
    return {metric.name: metric.value(_six(total)) for metric in VERDICT_METRICS}


def coverage_of_scores(
    design: ScoreDesign, replicates: int, rng: np.random.Generator
) -> Iterator[Coverage]:
    """Of ROC-AUC, average precision and Brier's score."""
    names = ("roc_auc", "average_precision", "brier")
    counted = np.zeros((len(names), 2))
    step = max(1, 5 * _CHUNK_CELLS // design.tasks // 33)
    for start in range(0, replicates, step):
        sums = design.draw(min(step, replicates - start), rng)
        interval = clustered_scores(sums, [design.tasks])
        for i in range(len(names)):
            low, high = interval.low[:, i], interval.high[:, i]
            inside = (low <= design.truth[i]) & (design.truth[i] <= high)
            counted[i] += (~np.isnan(low)).sum(), inside.sum()
    for name, (n, covered) in zip(names, counted, strict=True):
        yield Coverage(name, design.name, int(n), int(covered), n / replicates)
