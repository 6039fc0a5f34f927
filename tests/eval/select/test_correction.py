"""Correction for how many candidates were tried, and what it guarantees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.select.world import clustered
from trajudge.eval.select.rates import (
    cluster_sums,
    fixed_sequence,
    max_t_level,
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


def level(accepted: np.ndarray, success: np.ndarray, seed: int = 0) -> float:
    hits = accepted & success[:, None]
    clusters = cluster_sums(hits, accepted, np.arange(len(success)), np.zeros(len(success)))
    rng = np.random.default_rng(seed)
    return max_t_level(clusters, rate_sums(clusters), 0.7, 0.05, rng)


@pytest.mark.slow
def test_max_t_pays_nothing_for_copies_and_nearly_bonferroni_for_strangers() -> None:
    rng = np.random.default_rng(5)
    success = rng.random(2000) < 0.7
    one = rng.random((2000, 1)) < 0.5
    copies = [level(np.repeat(one, 8, axis=1), success, seed) for seed in range(6)]
    assert np.mean(copies) == pytest.approx(0.05, abs=0.005)
    strangers = np.arange(2000)[:, None] % 8 == np.arange(8)
    assert level(strangers, success) == pytest.approx(0.05 / 8, abs=0.003)
    assert 0.05 / 8 < level(rng.random((2000, 8)) < 0.5, success) < 0.05


def test_max_t_is_determined_by_its_seed() -> None:
    rng = np.random.default_rng(5)
    success, accepted = rng.random(300) < 0.7, rng.random((300, 4)) < 0.5
    assert level(accepted, success, 1) == level(accepted, success, 1)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_family_wise_error_is_at_most_alpha(correlation: float) -> None:
    """All candidates lie exactly at the bound, so every one that passes is an error. Tolerance:
    three standard errors of the simulation, 0.037. Uncorrected, the same world errs far more."""
    alpha, bound, runs, judges = 0.1, 0.75, 600, 4
    rng = np.random.default_rng(20)
    errors = {"fixed-sequence": 0, "max-t": 0, "uncorrected": 0}
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
        joint = max_t_level(clusters, rates, bound, alpha, rng, n_resamples=300)
        errors["fixed-sequence"] += bool(fixed_sequence(p, groups, testable, alpha).any())
        errors["max-t"] += bool((p <= joint).any())
        errors["uncorrected"] += bool((p <= alpha).any())
    tolerance = 3 * (alpha * (1 - alpha) / runs) ** 0.5
    assert errors["fixed-sequence"] / runs <= alpha + tolerance
    assert errors["max-t"] / runs <= alpha + tolerance
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
    assert p[0] <= max_t_level(clusters, rates, 0.75, 0.05, rng)
