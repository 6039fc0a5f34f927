"""Correction for how many candidates were tried, and what it guarantees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.select.world import clustered
from trajudge.eval.select.rates import (
    cluster_sums,
    fixed_sequence,
    p_values,
    rate_sums,
)

YES = np.ones(6, dtype=bool)


def test_a_family_stops_at_its_first_failure() -> None:
    p = np.array([0.01, 0.2, 0.001, 0.024, 0.026, 0.001])
    passed = fixed_sequence(p, [[0, 1, 2], [3, 4, 5]], YES, 0.05)
    assert passed.tolist() == [True, False, False, True, False, False]


def test_alpha_is_shared_among_families() -> None:
    p = np.array([0.03, 0.03])
    assert fixed_sequence(p, [[0, 1]], YES, 0.05).all()
    assert not fixed_sequence(p, [[0], [1]], YES, 0.05).any()


def test_candidates_that_cannot_pass_are_passed_over() -> None:
    p = np.array([1.0, 0.01])
    assert not fixed_sequence(p, [[0, 1]], YES, 0.05).any()
    assert fixed_sequence(p, [[0, 1]], np.array([False, True]), 0.05).tolist() == [False, True]


@pytest.mark.parametrize(("bound", "least"), [(0.8, 14), (0.9, 29)])
def test_the_fewest_labels_that_can_pass_are_all_correct(bound: float, least: int) -> None:
    for tasks, passes in ((least, True), (least - 1, False)):
        column = np.ones((tasks, 1), dtype=bool)
        rates = rate_sums(cluster_sums(~column, column, np.arange(tasks), np.zeros(tasks)))
        assert (p_values(rates.all_hits, bound)[0] <= 0.05) == passes


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_family_wise_error_is_at_most_alpha(correlation: float) -> None:
    """All candidates lie exactly at the bound, so every one that passes is an error. Tolerance:
    three standard errors of the simulation, 0.037. Uncorrected, the same world errs far more."""
    alpha, bound, runs, judges = 0.1, 0.75, 600, 4
    rng = np.random.default_rng(20)
    errors = {"fixed-sequence": 0, "uncorrected": 0}
    for _ in range(runs):
        success, _, task = clustered(rng, bound, tasks=60, each=3, correlation=correlation)
        # Two thresholds a judge, the loose set holds the strict one.
        strict = rng.random((len(success), judges)) < 0.35
        loose = strict | (rng.random((len(success), judges)) < 0.35)
        accepted = np.stack([strict, loose], axis=2).reshape(len(success), -1)
        clusters = cluster_sums(accepted & success[:, None], accepted, task, task * 0)
        rates = rate_sums(clusters)
        p = p_values(rates, bound)
        groups = [[2 * j, 2 * j + 1] for j in range(judges)]
        testable = p_values(rates.all_hits, bound) <= alpha / judges
        errors["fixed-sequence"] += bool(fixed_sequence(p, groups, testable, alpha).any())
        errors["uncorrected"] += bool((p <= alpha).any())
    tolerance = 3 * (alpha * (1 - alpha) / runs) ** 0.5
    assert errors["fixed-sequence"] / runs <= alpha + tolerance
    assert errors["uncorrected"] / runs > 2 * alpha


def test_judges_that_are_good_enough_pass() -> None:
    rng = np.random.default_rng(2)
    success, accepted, task = clustered(rng, 0.9, tasks=150, each=3, correlation=0.3)
    clusters = cluster_sums(
        (accepted & success)[:, None], accepted[:, None], task, np.zeros(len(task))
    )
    rates = rate_sums(clusters)
    p = p_values(rates, 0.75)
    assert fixed_sequence(p, [[0]], np.ones(1, bool), 0.05).all()
