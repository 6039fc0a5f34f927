"""How often intervals of agents' success cover: ``python -m benchmarks.suite_intervals``.

Reproduces Statistical Precipice's figure 1a (exact average coverage of intervals for one
proportion, over rollout budgets), figure 1b (what every level of resampling adds, simulated), and
Table 3 (widths, nested beside crossed draws). Beyond the paper: coverage where applications have
few scenarios. ``--experiments`` sets the size of the simulations.
"""

from __future__ import annotations

import argparse

import numpy as np

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


def main() -> None:
    """Print the figures and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=400)
    experiments = parser.parse_args().experiments
    ladder = {name: nested(levels) for name, levels in LADDER.items()}
    ladder["scenarios as clusters, no resampling"] = clusters
    few = {"nested": nested(Levels()), "scenarios as clusters": clusters}
    resamplers = {"nested": nested(Levels()), "crossed": crossed(Levels())}
    tables = [
        proportions(),
        simulated("Figure 1b", FIGURE_1B, ladder, experiments),
        simulated("Table 3", TABLE_3, resamplers, experiments),
        *(
            simulated(f"{model.scenarios} scenarios per app", model, few, experiments)
            for model in FEW_SCENARIOS
        ),
    ]
    print(render(tables, "table"))


if __name__ == "__main__":
    main()
