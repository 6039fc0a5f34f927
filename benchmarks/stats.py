"""Bootstrap speed beside its peers, in one run: ``python -m benchmarks.stats [--quick]``.

Suite: 15 apps, 387 scenarios, 27 configurations, 20 rollouts, 1,000 replicates. Judges: 1,106
trajectories of 300 tasks in 5 benchmarks, 13 judges x 3 labels x (precision, recall, F1), 10,000
replicates. Peers are rliable and arch where they import (rliable needs arch < 8, pandas < 3),
scipy, and the index-resampling form in numpy. Peers marked * ran fewer replicates and are scaled
linearly. Every round runs each of them in turn; medians over the rounds are reported, and on a
busy machine CPU ratios are the ones to compare.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from benchmarks.side_by_side import Way, compare
from trajudge.stats.intervals import Floats, Ints, cluster_bootstrap, sum_clusters
from trajudge.stats.suites import Tree, hierarchical_bootstrap, prepare, tree_from_cells

SUITE_B, JUDGES_B = 1000, 10_000
APPS = (26,) * 12 + (25,) * 3
LEVELS = np.array(list(product(range(3), repeat=3)))
ROLLOUTS = 20


def suite_outcomes(rng: np.random.Generator) -> list[Ints]:
    """0/1 outcomes of every app, (S, 3, 3, 3, R)."""
    apps = []
    for scenarios in APPS:
        rates = rng.uniform(0.1, 0.9) + rng.normal(0, 0.25, (scenarios, 1))
        rates = np.clip(rates + rng.normal(0, 0.05, (scenarios, 27)), 0, 1)
        outcomes = rng.random((scenarios, 27, ROLLOUTS)) < rates[..., None]
        apps.append(outcomes.reshape(scenarios, 3, 3, 3, ROLLOUTS).astype(np.int64))
    return apps


def suite_tree(apps: list[Ints], keep: Floats) -> Tree:
    """The tree of the outcomes; cells whose ``keep`` is over 0.9 are missing."""
    total = sum(APPS)
    app = np.repeat(np.arange(len(APPS)), APPS).repeat(27)
    scenario = np.arange(total).repeat(27)
    successes = np.concatenate([each.sum(axis=-1).reshape(-1) for each in apps])
    use = keep <= 0.9
    return tree_from_cells(
        app[use],
        scenario[use],
        successes[use],
        np.full(use.sum(), ROLLOUTS),
        np.tile(LEVELS, (total, 1))[use],
    )


def index_suite(apps: list[Ints], rng: np.random.Generator, n: int) -> Floats:
    """The same hierarchy by indices: one draw per scenario, axis level and rollout."""
    rates = np.empty((n, len(apps)))
    for b, (a, outcomes) in product(range(n), enumerate(apps)):
        s = len(outcomes)
        scenario = rng.integers(0, s, (s, 1, 1, 1, 1))
        first = rng.integers(0, 3, (s, 3, 1, 1, 1))
        second = rng.integers(0, 3, (s, 1, 3, 1, 1))
        third = rng.integers(0, 3, (s, 1, 1, 3, 1))
        rollout = rng.integers(0, ROLLOUTS, (s, 3, 3, 3, ROLLOUTS))
        rates[b, a] = outcomes[scenario, first, second, third, rollout].mean()
    return rates


def optional(name: str) -> Any:
    """A peer, or None with a sentence."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"{name} is left out: {error}")
        return None


def suite(quick: bool) -> None:
    rng = np.random.default_rng(0)
    apps = suite_outcomes(rng)
    cells = sum(APPS) * 27
    tree = suite_tree(apps, np.zeros(cells))
    ragged = suite_tree(apps, rng.random(cells))
    exact = prepare(tree)
    few = 5 if quick else 10

    def seed() -> np.random.Generator:
        return np.random.default_rng(1)

    def bootstrap(of: Tree) -> Callable[[], object]:
        return lambda: hierarchical_bootstrap(of, seed(), n_resamples=SUITE_B)

    ways = [
        Way("ours, exact, set-up included", bootstrap(tree), "full hierarchy"),
        Way("ours, exact, after set-up", lambda: exact.draw(seed(), SUITE_B), "full"),
        Way(
            "ours, exact, after set-up, 4 threads",
            lambda: exact.draw(seed(), SUITE_B, threads=4),
            "full, same digits",
        ),
        Way("ours, ragged tree (10 % missing), exact", bootstrap(ragged), "full"),
        Way(
            "numpy, index per draw",
            lambda: index_suite(apps, seed(), few),
            "full",
            factor=SUITE_B / few,
        ),
        *suite_peers(apps, few),
    ]
    compare("Suite: hierarchical bootstrap, 208,980 outcomes, B = 1,000", ways, rounds(quick))


def suite_peers(apps: list[Ints], few: int) -> list[Way]:
    ways = []
    if library := optional("rliable.library"):
        # rliable knows runs and tasks only: rollouts are runs, cells are tasks.
        scores = [each.reshape(-1, ROLLOUTS).T.astype(float) for each in apps]

        def rliable() -> None:
            for each in scores:
                bootstrap = library.StratifiedBootstrap(each, task_bootstrap=True)
                bootstrap.apply(np.mean, few)

        note = "cells and rollouts, no scenarios, no axes"
        ways.append(Way("rliable, per app", rliable, note, SUITE_B / few))
    if bootstrap := optional("arch.bootstrap"):
        means = [each.reshape(len(each), -1).mean(axis=1) for each in apps]

        def arch() -> None:
            sampler = bootstrap.IndependentSamplesBootstrap(*means, seed=1)
            sampler.apply(lambda *parts: np.array([p.mean() for p in parts]), SUITE_B)

        ways.append(Way("arch, independent samples", arch, "scenarios only"))
    return ways


def precision_recall_f1(totals: Floats) -> Floats:
    """Metrics (..., 3 * G) of TP, FP and FN (..., 3 * G) of G judges."""
    tp, fp, fn = np.split(totals, 3, axis=-1)
    return np.concatenate([tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn)], axis=-1)


def judges(quick: bool) -> None:
    rng = np.random.default_rng(2)
    n, columns = 1106, 13 * 3
    task = rng.integers(0, 300, n)
    benchmark = task % 5
    truth = (rng.random((n, 3)) < 0.35).repeat(13, axis=1)
    verdicts = rng.random((n, columns)) < np.where(truth, 0.8, 0.15)
    cells = [verdicts & truth, verdicts & ~truth, ~verdicts & truth]
    values = np.concatenate(cells, axis=1).astype(float)
    ways = [
        Way(
            "ours, tasks in benchmark strata",
            lambda: cluster_bootstrap(
                sum_clusters(values, task, benchmark),
                precision_recall_f1,
                np.random.default_rng(1),
                n_resamples=JUDGES_B,
            ),
            "clusters in strata",
        ),
        *judge_peers(values, 100 if quick else 200),
    ]
    compare("Judges: 117 intervals, B = 10,000", ways, rounds(quick))


def judge_peers(counts: Floats, few: int) -> list[Way]:
    """Peers on the counts they need, TP | FP | FN; they resample single trajectories."""
    from scipy.stats import bootstrap as scipy_bootstrap

    cells, rows_of = counts.astype(np.float32), np.arange(len(counts))

    def scipy_expert() -> None:
        scipy_bootstrap(
            (rows_of,),
            lambda rows, axis=-1: np.moveaxis(precision_recall_f1(cells[rows].sum(axis=-2)), -1, 0),
            n_resamples=few,
            batch=50,
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(1),
        )

    def index_loop() -> None:
        rng = np.random.default_rng(1)
        for _ in range(few):
            precision_recall_f1(cells[rng.integers(0, len(cells), len(cells))].sum(axis=0))

    factor, note = JUDGES_B / few, "single trajectories"
    ways = [
        Way("scipy, expert: one vectorised call", scipy_expert, note, factor),
        Way("numpy, index per draw", index_loop, note, factor),
    ]
    if library := optional("arch.bootstrap"):

        def arch() -> None:
            sampler = library.IIDBootstrap(cells, seed=1)
            sampler.apply(lambda drawn: precision_recall_f1(drawn.sum(axis=0)), few)

        ways.append(Way("arch, expert", arch, note, factor))
    return ways


def rounds(quick: bool) -> int:
    return 5 if quick else 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer replicates for the peers")
    quick = parser.parse_args().quick
    suite(quick)
    judges(quick)


if __name__ == "__main__":
    main()
