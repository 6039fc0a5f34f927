"""Expected regret against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.stats.suites import Tree, expected_regret, tree_from_cells


def one_app(successes: list[int], rollouts: int) -> Tree:
    n = len(successes)
    return tree_from_cells([0] * n, range(n), successes, [rollouts] * n)


def test_two_rollouts_one_scenario_by_hand() -> None:
    """Half of {1, 0} against half of {0, 0}: wrong only by a lost coin flip after a tie."""
    found = expected_regret(one_app([1], 2), one_app([0], 2), np.random.default_rng(0), 20_000)
    assert found.gap.tolist() == [0.5]
    assert found.wrong[0] == pytest.approx(0.25, abs=0.01)
    assert found.regret[0] == found.wrong[0] * 0.5
    assert found.incurred(np.array([True])) == found.regret[0]
    assert found.incurred(np.array([False])) == 0


def test_a_clear_winner_costs_nothing() -> None:
    found = expected_regret(one_app([4, 4], 4), one_app([0, 0], 4), np.random.default_rng(0))
    assert found.wrong.tolist() == found.regret.tolist() == [0]


def test_equal_agents_cost_nothing_whoever_is_taken() -> None:
    found = expected_regret(one_app([1, 2], 4), one_app([2, 1], 4), np.random.default_rng(0))
    assert found.regret.tolist() == [0]


def test_swapping_the_agents_changes_the_sign_only() -> None:
    first, second = one_app([3, 2, 1], 6), one_app([2, 1, 1], 6)
    one = expected_regret(first, second, np.random.default_rng(0), 4000)
    two = expected_regret(second, first, np.random.default_rng(1), 4000)
    assert one.gap == -two.gap
    assert one.wrong[0] == pytest.approx(two.wrong[0], abs=0.04)


def test_cells_must_match() -> None:
    with pytest.raises(ValueError, match="same cells"):
        expected_regret(one_app([1], 2), one_app([1, 1], 2), np.random.default_rng(0))


def test_halving_scenarios_against_enumeration() -> None:
    """Two of four scenarios with gaps 1, 1, -0.5, -0.5: one of the six halves is wrong."""
    first, second = one_app([4, 4, 0, 0], 4), one_app([0, 0, 2, 2], 4)
    rng = np.random.default_rng(0)
    found = expected_regret(first, second, rng, 20_000, halves="scenarios")
    assert found.gap.tolist() == [0.25]
    assert found.wrong[0] == pytest.approx(1 / 6, abs=0.01)


def test_the_two_readings_differ_where_scenarios_do() -> None:
    """Rollouts that never vary leave halves of rollouts without error, not those of scenarios."""
    first, second = one_app([4, 4, 4, 0, 0, 0], 4), one_app([0, 0, 0, 4, 4, 0], 4)
    rng = np.random.default_rng(0)
    assert expected_regret(first, second, rng).wrong.tolist() == [0]
    found = expected_regret(first, second, rng, 20_000, halves="scenarios")
    assert found.wrong[0] == pytest.approx(7 / 20, abs=0.01)  # 4 of 20 halves, and 6 ties


def test_apps_are_halved_apart() -> None:
    app, scenario = [0, 0, 1, 1, 1, 1], range(6)
    one = tree_from_cells(app, scenario, [4, 0, 4, 4, 0, 0], [4] * 6)
    two = tree_from_cells(app, scenario, [1, 1, 0, 0, 2, 2], [4] * 6)
    found = expected_regret(one, two, np.random.default_rng(0), 20_000, halves="scenarios")
    assert found.wrong == pytest.approx([1 / 2, 1 / 6], abs=0.01)
