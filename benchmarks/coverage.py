"""How often the 95 % intervals cover: ``python -m benchmarks.coverage [--replicates N]``.

Every metric of verdicts is measured over three kinds of designs, every replicate by the very
functions that ``eval.score`` calls:

- ``real``: AgentRewardBench's tasks, resampled with replacement within their benchmark, for every
  published judge and the rule-based baseline, overall, by benchmark and by agent; the value on all
  tasks is the truth. Needs ``--data`` (the published judgments) or ``TRAJUDGE_REAL_DATA``.
- ``synthetic``: beta-binomial tasks of known truth: 10 to 300 tasks of one size or ragged,
  prevalences .1 to .6, correlation within tasks 0 to .7, three judges, tasks judged alike or not.
- ``strata``: the same in strata whose rates differ or not: the layout of the bundled sample, few
  and many strata, of one task, of few tasks, of one large and many tiny.

Every fifth of the made designs is measured unless ``--every 1`` asks for all 702 and 315.

Metrics of scores (ROC-AUC, average precision, Brier's score), differences between judges and
Kendall's tau between two orders of agents (a tenth of the replicates) are measured on synthetic
designs. Beside ours stands what was printed before: Wilson's interval on the raw number of trials,
and bootstrap percentiles of tau. A cell counts where the design has at least 20 positives and 100
replicates have an interval; those without one are left out of its coverage and their share is told.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.coverage_comparisons import (
    Counted,
    coverage_of_differences,
    coverage_of_tau,
    pair_designs,
    ranking_designs,
)
from benchmarks.coverage_designs import (
    Design,
    ScoreDesign,
    real_designs,
    score_designs,
    stratified_designs,
    synthetic_designs,
)
from trajudge.eval.scoring.metrics import METRICS, VERDICT_METRICS, Limited, verdict_limits
from trajudge.stats.intervals import (
    Floats,
    clustered_scores,
    wilson,
)
from trajudge.util.tables import Table, render

FEW_POSITIVES, FEW_REPLICATES = 20, 100
_CHUNK_CELLS = 60_000
_SHOWN = 5


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


def measure(replicates: int, data: Path | None, every: int = 5) -> list[Coverage]:
    """Coverage of every metric on every design with at least 20 positives."""
    designs = [*synthetic_designs(every)]
    if data is not None:
        designs += real_designs(data)
    designs += stratified_designs(every)
    found: list[Coverage] = []
    for number, design in enumerate(designs):
        if design.positives >= FEW_POSITIVES - 1e-9:
            found += coverage_of_verdicts(design, replicates, np.random.default_rng([0, number]))
    for number, scored in enumerate(score_designs(every)):
        found += coverage_of_scores(scored, replicates, np.random.default_rng([1, number]))
    return [*found, *comparisons(replicates, every)]


def comparisons(replicates: int, every: int) -> Iterator[Coverage]:
    """Measure differences between judges, and Kendall's tau."""
    counted: list[Counted] = []
    for number, pair in enumerate(pair_designs(every)):
        if pair.positives >= FEW_POSITIVES - 1e-9:
            counted += coverage_of_differences(pair, replicates, np.random.default_rng([3, number]))
    for number, ranked in enumerate(ranking_designs(every)):
        few = max(replicates // 10, 1)
        counted += coverage_of_tau(ranked, few, np.random.default_rng([4, number]))
    for each in counted:
        if each.n:
            share = each.n / each.defined
            yield Coverage(each.metric, each.design, each.n, each.covered, share)


def tables(found: list[Coverage]) -> list[Table]:
    """A row a metric and kind of design: mean, least, cells below 91 %; then the worst cells."""
    rows, worst = [], []
    kinds = dict.fromkeys(each.design.split(":")[0] for each in found)
    for kind, metric in product(kinds, dict.fromkeys(each.metric for each in found)):
        cells = [e for e in found if e.metric == metric and e.design.split(":")[0] == kind]
        cells = [e for e in cells if e.n >= FEW_REPLICATES]
        if not cells:
            continue
        shares = np.array([each.share for each in cells])
        least = min(cells, key=lambda each: each.share)
        rows.append(
            (
                *(kind, metric, str(len(cells)), f"{100 * shares.mean():.1f}"),
                f"{100 * least.share:.1f} ± {100 * least.error:.1f}",
                f"{100 * shares.max():.1f}",
                str(int((shares < 0.91).sum())),
                f"{100 * min(each.with_interval for each in cells):.0f}",
            )
        )
        if "raw" not in metric and "percentiles" not in metric:
            worst += sorted(cells, key=lambda each: each.share)[:1]
    worst = sorted(worst, key=lambda each: each.share)[:_SHOWN]
    head = ("designs", "metric", "cells", "mean", "least ± s.e.", "most", "< 91", "least with one")
    low = [(e.metric, e.design, f"{100 * e.share:.1f} ± {100 * e.error:.1f}") for e in worst]
    return [
        Table("Coverage of 95 % intervals (%)", head, rows, names=2),
        Table("Least covered cells", ("metric", "design", "coverage"), low, names=2),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    default = os.environ.get("TRAJUDGE_REAL_DATA")
    add = parser.add_argument
    add("--replicates", type=int, default=10_000, help="of every design (default: 10000)")
    add(
        "--data",
        type=Path,
        default=Path(default) / "agentrewardbench" if default else None,
        help="published judgments in AgentRewardBench's layout",
    )
    add("--every", type=int, default=5, help="Nth of the synthetic designs (default: 5; 1: all)")
    options = parser.parse_args()
    begin = time.perf_counter()
    found = measure(options.replicates, options.data, options.every)
    print(render(tables(found), "table"))
    print(f"{options.replicates:,} replicates a design, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
