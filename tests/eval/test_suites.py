"""Suites of tasks: the tree of outcomes, what is averaged over it, regret, profiles."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.proportions import bimodal_prior
from trajudge.stats import suites as trees
from trajudge.stats.suites import (
    BinomialTables,
    Tree,
    binomial_tables,
    expected_regret,
    mad_decomposition,
    performance_profile,
    t_half_width,
    tree_from_cells,
    tree_from_rollouts,
)

ROWS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from("xyz"), st.sampled_from("lm"), st.booleans()),
    min_size=1,
    max_size=40,
)


@given(ROWS)
def test_rollouts_become_cells_and_rates(rows: list[tuple[str, str, str, bool]]) -> None:
    app, scenario, axis, success = (list(column) for column in zip(*rows, strict=True))
    tree = trees.tree_from_rollouts(app, scenario, success, np.array(axis)[:, None])
    cells: dict[tuple[str, str, str], list[bool]] = {}
    for a, s, x, y in sorted(rows):
        cells.setdefault((a, s, x), []).append(y)
    np.testing.assert_allclose(tree.rates, [np.mean(values) for values in cells.values()])
    for name, nested, pooled in zip(
        tree.app_names, trees.app_rates(tree), trees.app_rates(tree, "pooled"), strict=True
    ):
        mine = {key: values for key, values in cells.items() if key[0] == name}
        names = {key[1] for key in mine}
        by_scenario = [
            np.mean([np.mean(v) for key, v in mine.items() if key[1] == s]) for s in names
        ]
        assert nested == pytest.approx(np.mean(by_scenario))
        assert pooled == pytest.approx(np.mean([y for v in mine.values() for y in v]))


def test_two_apps_may_name_their_scenarios_alike() -> None:
    tree = trees.tree_from_rollouts(["A", "B"], ["s", "s"], [1, 0])
    assert tree.scenario.tolist() == [0, 1]
    assert tree.levels.shape == (2, 0)


def test_filled_share_counts_each_scenarios_own_grid() -> None:
    """One full 2 x 2 grid, and a diagonal of 3 out of 3 x 3."""
    axes = [[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [1, 1], [2, 2]]
    tree = trees.tree_from_cells(["a"] * 7, [1] * 4 + [2] * 3, [1] * 7, [1] * 7, axes)
    assert tree.filled_share() == pytest.approx(7 / 13)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 0.49))
def test_suite_statistics_are_scipys(rates: list[float], share: float) -> None:
    from scipy.stats import trim_mean

    array = np.array([rates, rates])
    assert trees.trimmed_mean(share)(array).tolist() == pytest.approx([trim_mean(rates, share)] * 2)
    assert trees.interquartile_mean(array)[0] == pytest.approx(trim_mean(rates, 0.25))
    assert trees.median(array)[0] == np.median(rates)
    assert trees.mean(array)[0] == pytest.approx(np.mean(rates))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no rollouts"):
        trees.tree_from_rollouts([], [], [])
    with pytest.raises(ValueError, match="0 or 1"):
        trees.tree_from_rollouts(["a"], ["s"], [float("nan")])
    with pytest.raises(ValueError, match="at least one rollout"):
        trees.tree_from_cells(["a"], ["s"], [0], [0])
    with pytest.raises(ValueError, match="trimmed"):
        trees.trimmed_mean(0.5)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_half_width_is_scipys(values: list[float]) -> None:
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    assert t_half_width(values) == pytest.approx(half)
    assert t_half_width(values[:1]) is t_half_width([]) is None


RATES = st.lists(st.integers(0, 10), min_size=1, max_size=20)


@given(RATES, RATES)
def test_profile_is_the_share_at_least_tau(rates: list[int], taus: list[int]) -> None:
    ours = performance_profile(np.array(rates) * 0.1, np.array(taus) / 10)
    assert ours.tolist() == [np.mean([r >= tau for r in rates]) for tau in taus]


def one_app(successes: list[int], rollouts: int) -> Tree:
    n = len(successes)
    return tree_from_cells([0] * n, range(n), successes, [rollouts] * n)


def test_two_rollouts_one_scenario_by_hand() -> None:
    """Half of {1, 0} against half of {0, 0}: wrong only by a lost coin flip after a tie."""
    found = expected_regret(one_app([1], 2), one_app([0], 2), np.random.default_rng(0), 20_000)
    assert found.gap.tolist() == [0.5]
    assert found.wrong[0] == pytest.approx(0.25, abs=0.01)
    assert found.regret[0] == found.wrong[0] * 0.5


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


CELL = st.tuples(
    st.integers(0, 2), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3), st.integers(3, 5)
)


def tree_of(cells: list[tuple[int, int, int, int, int]]) -> Tree:
    table = np.array(cells)
    return tree_from_cells(
        np.zeros(len(table)), table[:, 0], table[:, 3], table[:, 4], table[:, 1:3]
    )


@given(st.lists(CELL, min_size=1, max_size=14, unique_by=lambda cell: cell[:3]))
def test_pairs_differ_on_one_axis_only(cells: list[tuple[int, int, int, int, int]]) -> None:
    expected = [
        abs(a[3] / a[4] - b[3] / b[4])
        for a, b in combinations(cells, 2)
        if a[0] == b[0] and a[2] == b[2] and a[1] != b[1]
    ]
    found = mad_decomposition(tree_of(cells), 0)
    np.testing.assert_allclose(np.sort(np.abs(found.differences)), np.sort(expected))
    if expected:
        assert found.mad == pytest.approx(np.mean(expected))
        assert found.excess == found.mad - found.floor
    else:
        assert np.isnan(found.mad)


@pytest.mark.slow
@given(
    st.lists(st.booleans(), min_size=3, max_size=3), st.lists(st.booleans(), min_size=2, max_size=3)
)
def test_the_floor_is_the_mean_over_all_deals(first: list[bool], second: list[bool]) -> None:
    axis = np.array([0] * len(first) + [1] * len(second))[:, None]
    tree = tree_from_rollouts([0] * len(axis), [0] * len(axis), first + second, axis)
    gaps = [abs(np.mean(deal[:3]) - np.mean(deal[3:])) for deal in permutations(first + second)]
    assert mad_decomposition(tree, 0).floor == pytest.approx(np.mean(gaps))


@pytest.mark.parametrize(
    ("rollouts", "noise"), [(1, 0.175), (3, 0.129), (5, 0.108), (10, 0.082), (20, 0.061)]
)
def test_pure_noise_is_all_floor(rollouts: int, noise: float) -> None:
    """The paper's calibration and no effect of the axis: its 0.09-0.21 is the size of chance."""
    rng, n, prior = np.random.default_rng(0), 20_000, bimodal_prior(3)
    part = rng.choice(2, size=n, p=prior.weight)
    rates = np.repeat(rng.beta(prior.a[part], prior.b[part]), 2)
    tree = tree_from_cells(
        np.zeros(2 * n),
        np.repeat(np.arange(n), 2),
        rng.binomial(rollouts, rates),
        np.full(2 * n, rollouts),
        np.tile([0, 1], n)[:, None],
    )
    found = mad_decomposition(tree, 0)
    assert found.mad == pytest.approx(noise, abs=0.005)
    assert found.excess == pytest.approx(0, abs=0.005)


def test_a_real_effect_is_excess() -> None:
    tree = tree_from_cells([0, 0], [0, 0], [20, 0], [20, 20], [[0], [1]])
    found = mad_decomposition(tree, 0)
    assert found.mad == 1
    assert found.excess > 0.8


def tables(rollouts: int = 20, most_copies: int = 702) -> BinomialTables:
    found = binomial_tables(rollouts, most_copies)
    assert found is not None
    return found


@pytest.mark.parametrize("rollouts", [2, 3, 20, 33])
def test_the_laws_are_scipys(rollouts: int) -> None:
    from scipy import stats

    for place, digit in enumerate(tables(rollouts, 300).digits):
        for row, (first, ends) in enumerate(zip(digit.first, digit.ends, strict=True)):
            k, value = divmod(row, digit.values)
            law = stats.binom(rollouts * value * 16**place, (k + 1) / rollouts)
            expected = law.cdf(first + np.arange(len(ends)))
            np.testing.assert_allclose(ends - row, expected, atol=2e-13)


@pytest.mark.parametrize(
    ("rollouts", "copies", "k"),
    [(20, 1, 1), (20, 3, 17), (20, 16, 10), (20, 31, 5), (20, 300, 13), (20, 702, 19), (3, 40, 2)],
)
def test_draws_have_the_binomial_law(rollouts: int, copies: int, k: int) -> None:
    from scipy import stats

    n = 200_000
    drawn = tables(rollouts).successes(
        np.full((1, n), copies, dtype=np.uint16), np.array([k]), np.random.default_rng(copies)
    )
    expected = n * stats.binom.pmf(
        np.arange(rollouts * copies + 1), rollouts * copies, k / rollouts
    )
    found = np.bincount(drawn, minlength=len(expected))
    often = expected > 10
    rest = [found[~often].sum()], [expected[~often].sum()]
    found, expected = (np.r_[a[often], b] for a, b in zip((found, expected), rest, strict=True))
    assert stats.chisquare(found, expected * n / expected.sum()).pvalue > 1e-3


def test_cells_of_all_kinds_are_summed_each_with_its_own_copies() -> None:
    rng = np.random.default_rng(3)
    k = np.arange(1, 20)
    copies = np.broadcast_to(rng.integers(0, 90, (19, 1)), (19, 100_000)).astype(np.uint16)
    drawn = tables().successes(copies, k, rng)
    mean = (copies[:, 0] * k).sum()
    variance = (copies[:, 0] * k * (20 - k) / 20).sum()
    assert drawn.mean() == pytest.approx(mean, abs=4 * (variance / 100_000) ** 0.5)
    assert drawn.var() == pytest.approx(variance, rel=0.02)


def test_no_copies_have_no_successes() -> None:
    none = np.zeros((19, 5), dtype=np.uint16)
    assert tables().successes(none, np.arange(1, 20), np.random.default_rng(0)).tolist() == [0] * 5


def test_tables_that_would_be_too_large_are_not_made() -> None:
    assert binomial_tables(65, 10) is None
    assert binomial_tables(20, 2000) is None
    assert tables(1, 100).digits == ()
