"""How often the 95 % intervals cover: ``python -m benchmarks.coverage [--only judges suites]``.

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

``suites`` are agents' success rates: Statistical Precipice's figure 1a (exact average coverage of
intervals for one proportion, over rollout budgets), figure 1b (what every level of resampling adds,
simulated), and Table 3 (widths, nested beside crossed draws). Beyond the paper: coverage where
applications have few scenarios. ``--experiments`` sets the size of the simulations.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from tests.worlds.cluster_designs import (
    real_designs,
    score_designs,
    stratified_designs,
    synthetic_designs,
)
from tests.worlds.comparisons import (
    coverage_of_differences,
    coverage_of_tau,
    pair_designs,
    ranking_designs,
)
from tests.worlds.coverage import Coverage, coverage_of_scores, coverage_of_verdicts
from tests.worlds.proportions import METHODS, average_coverage, bimodal_prior, worst_coverage
from tests.worlds.suites import (
    FEW_SCENARIOS,
    FIGURE_1B,
    LADDER,
    TABLE_3,
    Method,
    SuiteModel,
    crossed,
    nested,
    simulate_coverage,
    tree_of,
)
from trajudge.stats.intervals import Interval, Ints
from trajudge.stats.suites import Levels, cluster_t_interval
from trajudge.util.tables import Table, render

BUDGETS = (1, 3, 5, 10, 20)
FEW_POSITIVES, FEW_REPLICATES = 20, 100
_SHOWN = 5


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
    for number, pair in enumerate(pair_designs(every)):
        if pair.positives >= FEW_POSITIVES - 1e-9:
            rng = np.random.default_rng([3, number])
            yield from coverage_of_differences(pair, replicates, rng)
    for number, ranked in enumerate(ranking_designs(every)):
        few = max(replicates // 10, 1)
        yield from coverage_of_tau(ranked, few, np.random.default_rng([4, number]))


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


def clusters(outcomes: Ints, _: np.random.Generator) -> Interval:
    """Student's interval over scenarios."""
    return cluster_t_interval(tree_of(outcomes))


def proportions() -> Table:
    """Average coverage at 3 rollouts' prior for every budget, and the worst rate's at 3."""
    prior = bimodal_prior(3)
    rows = [
        (
            name,
            *(f"{100 * average_coverage(method, budget, prior):.1f}" for budget in BUDGETS),
            f"{100 * worst_coverage(method, 3):.1f}",
        )
        for name, method in METHODS.items()
    ]
    head = ("interval", *(f"R = {budget}" for budget in BUDGETS), "worst rate, R = 3")
    return Table("Figure 1a: average coverage, %", head, rows, names=1)


def simulated(title: str, model: SuiteModel, methods: dict[str, Method], experiments: int) -> Table:
    """Coverage and mean width of every method on one model of a suite."""
    rows = []
    for name, method in methods.items():
        rng = np.random.default_rng(0)
        found = simulate_coverage(
            model, method, rng, experiments=experiments, truth=model.population_mean()
        )
        shares = (found.coverage, found.standard_error)
        rows.append((name, *(f"{100 * share:.1f}" for share in shares), f"{found.width:.3f}"))
    return Table(title, ("method", "coverage %", "± s.e.", "width"), rows, names=1)


def suites(experiments: int) -> list[Table]:
    """Measure the intervals of agents' success rates."""
    ladder = {name: nested(levels) for name, levels in LADDER.items()}
    ladder["scenarios as clusters, no resampling"] = clusters
    few = {"nested": nested(Levels()), "scenarios as clusters": clusters}
    resamplers = {"nested": nested(Levels()), "crossed": crossed(Levels())}
    return [
        proportions(),
        simulated("Figure 1b", FIGURE_1B, ladder, experiments),
        simulated("Table 3", TABLE_3, resamplers, experiments),
        *(
            simulated(f"{model.scenarios} scenarios per app", model, few, experiments)
            for model in FEW_SCENARIOS
        ),
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
    add("--experiments", type=int, default=400, help="of every suite (default: 400)")
    parts = ("judges", "suites")
    add("--only", nargs="*", default=parts, choices=parts, metavar="PART")
    options = parser.parse_args()
    begin = time.perf_counter()
    if "judges" in options.only:
        found = measure(options.replicates, options.data, options.every)
        print(render(tables(found), "table"))
    if "suites" in options.only:
        print(render(suites(options.experiments), "table"))
    print(f"{options.replicates:,} replicates a design, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
