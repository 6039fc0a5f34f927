"""Selection by caps and ties, and its validation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.stats.hazard_world import simulate
from trajudge.stats.difficulty import (
    Attempts,
    HazardFit,
    attempts,
    fit_hazard,
    hardness_probability,
    kendall_tau,
    reference_success,
    select_hard,
    validate_subset,
)


def known(log_hazard: list[float], sd: float = 0.3) -> HazardFit:
    n = len(log_hazard)
    return HazardFit(np.array(log_hazard), np.full(n, sd), np.zeros(1), np.zeros(n), 0.0, {}, True)


def pool(site: list[str], category: list[str], agents: int = 4) -> Attempts:
    tasks = list(range(len(site)))
    return attempts(
        np.repeat(np.arange(agents), len(site)),
        np.tile(tasks, agents),
        np.ones(agents * len(site)),
        np.zeros(agents * len(site)),
        site=dict(enumerate(site)),
        template=dict(enumerate(tasks)),
        category=dict(enumerate(category)),
    )


def test_hardness_and_reference_success_are_those_of_draws() -> None:
    fit = known([-3.0, -1.5, 0.5], 0.7)
    draws = np.random.default_rng(0).normal(fit.log_hazard, 0.7, (200_000, 3))
    success = -np.expm1(-np.exp(draws))
    np.testing.assert_allclose(hardness_probability(fit), (success <= 0.2).mean(axis=0), atol=0.005)
    np.testing.assert_allclose(reference_success(fit), success.mean(axis=0), atol=0.003)


def test_every_category_gives_its_hardest_up_to_the_cap() -> None:
    data = pool(["s"] * 7, ["hard"] * 4 + ["easy"] * 3)
    fit = known([-1.0, -4.0, -3.0, -2.0, 3.0, 2.5, 2.0], 0.1)
    found = select_hard(data, fit)
    assert found.selected.tolist() == [1, 2, 3, 6, 5]
    assert found.very_easy.tolist() == [True, False]


def test_ties_go_to_the_site_with_fewer_tasks() -> None:
    data = pool(["s", "s", "t"], ["c"] * 3)
    found = select_hard(data, known([-4.0, -4.0, -4.0]), cap=2)
    assert sorted(data.site[found.selected].tolist()) == [0, 1]


def test_tasks_that_few_agents_tried_are_not_candidates() -> None:
    found = select_hard(pool(["s"], ["c"], agents=3), known([-4.0]))
    assert found.selected.tolist() == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_kendall_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import kendalltau

    first, second = (np.array(side) / 5 for side in zip(*pairs, strict=True))
    expected = kendalltau(first, second).statistic
    assert float(kendall_tau(first, second)) == pytest.approx(expected, nan_ok=True)


def test_two_swaps_among_eight_agents_are_the_published_tau() -> None:
    order = np.arange(8.0)
    swapped = order[[1, 0, 3, 2, 4, 5, 6, 7]]
    assert float(kendall_tau(order, swapped)) == pytest.approx(0.857, abs=5e-4)


def test_the_whole_pool_validates_itself() -> None:
    data, _ = simulate(0, tasks=60)
    found = validate_subset(data, np.arange(60), np.random.default_rng(0))
    assert (found.tau, found.mae) == (1, 0)
    assert (found.tau_pass_rate, found.mae_pass_rate) == (1, 1)


def test_a_hard_subset_drifts_and_says_so() -> None:
    data, _ = simulate(1, tasks=120)
    subset = select_hard(data, fit_hazard(data))
    found = validate_subset(data, subset.selected, np.random.default_rng(0), n_resamples=200)
    outcomes = data.outcomes()
    gap = outcomes.mean(axis=1) - outcomes[:, subset.selected].mean(axis=1)
    assert found.mae == pytest.approx(np.abs(gap).mean())
    assert found.mae_pass_rate < 0.5
    assert found.tau_replicates.shape == (200,)
