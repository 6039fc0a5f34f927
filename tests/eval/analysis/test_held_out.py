"""Held-out tasks of the telemetry judge: what single seeds reach, and which accept nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trajudge.eval.analysis.held_out import FeatureTable, HeldOutResult, evaluate, rendered
from trajudge.judges.methods.telemetry import FEATURES

RUNS = 60


def noise() -> FeatureTable:
    """Runs whose numbers say nothing of their labels: some seeds find a threshold, others none."""
    rng = np.random.default_rng(3)
    names = np.array([f"t{n}" for n in range(RUNS)])
    return FeatureTable(
        rows=rng.random((RUNS, len(FEATURES))),
        labels=np.arange(RUNS) % 2 == 0,
        groups=names,
        benchmarks=np.full(RUNS, "shop"),
        splits=np.full(RUNS, ""),
        ended_by_environment=np.zeros(RUNS, dtype=bool),
        keys=names.astype(object),
        annotations=names.astype(object),
        rewards=np.full(RUNS, np.nan),
    )


def reached(seeds: Sequence[int]) -> list[HeldOutResult]:
    return evaluate(noise(), None, seeds=seeds, folds=2, names=list(FEATURES), target_precision=0.7)


def test_seeds_that_accept_nothing_are_counted_beside_the_range_of_the_others() -> None:
    """They have no precision, and the range of the others alone would hide them."""
    single = [next(row for row in reached([seed]) if row.n == RUNS) for seed in range(8)]
    empty = sum(row.accepted == 0 for row in single)
    rows = reached(range(8))
    assert 0 < empty < 8
    assert next(row for row in rows if row.n == RUNS).empty == empty
    last = rendered(rows).splitlines()[-1]
    assert last.startswith("Single seeds, overall: precision ")
    assert last.endswith(f", {empty} seeds accepted nothing and had no precision.")
