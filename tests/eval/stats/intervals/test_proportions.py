"""Figure 1a of Statistical Precipice, and what its average hides."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worlds.proportions import (
    METHODS,
    average_coverage,
    bimodal_prior,
    coverage_at,
    wald,
    worst_coverage,
)
from trajudge.stats.intervals import clopper_pearson, wilson

BUDGETS = (1, 3, 5, 10, 20)


def test_wald_covers_a_quarter_at_three_rollouts_and_wilson_ninety_five_percent() -> None:
    prior = bimodal_prior(3)
    assert average_coverage(wald, 3, prior) == pytest.approx(0.25, abs=0.01)
    for budget in BUDGETS:
        assert average_coverage(wilson, budget, prior) == pytest.approx(0.95, abs=0.01)


def test_reading_a_holds_the_prior_fixed() -> None:
    prior = bimodal_prior(3)
    got = [round(average_coverage(wald, budget, prior), 3) for budget in BUDGETS]
    assert got == [0.0, 0.257, 0.356, 0.486, 0.597]
    exact = [round(average_coverage(clopper_pearson, budget, prior), 3) for budget in BUDGETS]
    assert exact == [0.997, 0.994, 0.992, 0.989, 0.985]


def test_reading_b_recomputes_the_prior() -> None:
    got = [round(average_coverage(wald, r, bimodal_prior(r)), 3) for r in BUDGETS]
    assert got == [0.0, 0.257, 0.276, 0.285, 0.289]
    got = [round(average_coverage(wilson, r, bimodal_prior(r)), 3) for r in BUDGETS]
    assert got == [0.957, 0.953, 0.952, 0.952, 0.952]


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_exact_average_is_what_a_simulation_converges_to(name: str) -> None:
    rng, n, budget = np.random.default_rng(7), 40_000, 5
    prior = bimodal_prior(3)
    part = rng.choice(2, size=n, p=prior.weight)
    rates = rng.beta(prior.a[part], prior.b[part])
    interval = METHODS[name](rng.binomial(budget, rates), budget, 0.95)
    exact = average_coverage(METHODS[name], budget, prior)
    four_standard_errors = 4 * 0.5 / n**0.5
    assert interval.covers(rates).mean() == pytest.approx(exact, abs=four_standard_errors)


def test_average_is_not_worst_case() -> None:
    assert [round(worst_coverage(wilson, r), 3) for r in (1, 3, 20)] == [0.793, 0.827, 0.837]
    assert all(worst_coverage(clopper_pearson, r) >= 0.95 for r in (1, 3, 20))


def test_worst_case_is_below_every_rate_of_a_grid() -> None:
    grid = np.linspace(0.001, 0.999, 999)
    for method in METHODS.values():
        assert worst_coverage(method, 7) <= coverage_at(method, 7, grid).min() + 1e-12
