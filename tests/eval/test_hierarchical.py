"""The hierarchical bootstrap against a loop that reads like section 4.3, and Figure 1b."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.eval.reference import hierarchical_loop
from tests.samples import FUZZING
from tests.worlds.suites import (
    FIGURE_1B,
    Coverage,
    Method,
    SuiteModel,
    simulate_coverage,
    tree_of,
)
from trajudge.stats import suites as trees
from trajudge.stats.intervals import Floats
from trajudge.stats.suites import (
    CLUSTERED,
    ENOUGH_SCENARIOS,
    ONE_ROLLOUT,
    ONE_SCENARIO,
    SPARSE,
    BalancedApp,
    Levels,
    RaggedApp,
    cluster_t_interval,
    clustered_success,
    hierarchical_bootstrap,
    prepare,
)

Outcomes = dict[int, dict[int, dict[tuple[int, ...], list[int]]]]
RUNGS = [
    Levels(),
    Levels(scenarios=False),
    Levels(axes=False),
    Levels(rollouts=False),
    Levels(axes=(True, False)),
    Levels(scenarios=False, axes=False),
]
# Every choice of levels on a balanced or a ragged tree; a search (``make fuzz``) takes both.
SHAPED = [
    (levels, ragged)
    for place, levels in enumerate(RUNGS)
    for ragged in (False, True)
    if FUZZING or place % 2 == ragged
]


def outcomes(seed: int, *, ragged: bool, rollouts: int = 4) -> Outcomes:
    """Two apps of 4 and 3 scenarios, axes of 3 and 2 levels; ragged: a third of cells missing."""
    rng = np.random.default_rng(seed)
    tree: Outcomes = {}
    for app, size in enumerate((4, 3)):
        for s in range(size):
            rate = rng.random()
            cells = list(product(range(3), range(2)))
            if ragged:
                cells = [cell for cell in cells if rng.random() < 0.65] or cells[:1]
            tree.setdefault(app, {})[10 * app + s] = {
                cell: rng.binomial(1, rate, rollouts + (rng.integers(3) if ragged else 0)).tolist()
                for cell in cells
            }
    return tree


def as_tree(data: Outcomes) -> trees.Tree:
    rows = [
        (app, scenario, y, *cell)
        for app, scenarios in data.items()
        for scenario, cells in scenarios.items()
        for cell, values in cells.items()
        for y in values
    ]
    table = np.array(rows)
    return trees.tree_from_rollouts(table[:, 0], table[:, 1], table[:, 2], table[:, 3:])


def assert_same_law(fast: Floats, slow: Floats) -> None:
    """Means within four standard errors, spreads within 10 %, middle quantiles close."""
    errors = slow.std(axis=0) * (1 / len(slow) + 1 / len(fast)) ** 0.5
    assert (abs(fast.mean(axis=0) - slow.mean(axis=0)) <= 4 * errors + 1e-12).all()
    np.testing.assert_allclose(fast.std(axis=0), slow.std(axis=0), rtol=0.1, atol=1e-12)
    for q in (0.1, 0.5, 0.9):
        gap = np.quantile(fast, q, axis=0) - np.quantile(slow, q, axis=0)
        assert (abs(gap) <= 0.25 * slow.std(axis=0) + 1e-12).all()


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("levels", "ragged"), SHAPED, ids=repr)
def test_replicates_have_the_law_of_the_text(ragged: bool, levels: Levels) -> None:
    data, rng = outcomes(1, ragged=ragged), np.random.default_rng(2)
    sampler = prepare(as_tree(data), levels)
    assert isinstance(sampler.apps[0], RaggedApp if ragged else BalancedApp)
    slow = np.array([hierarchical_loop(data, rng, levels) for _ in range(800)])
    assert_same_law(sampler.draw(rng, 20_000), slow)


@pytest.mark.parametrize("levels", RUNGS, ids=repr)
def test_the_quick_and_the_general_form_agree(levels: Levels) -> None:
    tree, rng = as_tree(outcomes(3, ragged=False)), np.random.default_rng(4)
    quick = prepare(tree, levels)
    general = prepare(tree, levels, unbiased=True)
    assert isinstance(general.apps[0], RaggedApp)
    plain = [
        RaggedApp(app.scenarios, app.axes) for app in general.apps if isinstance(app, RaggedApp)
    ]
    slow = np.stack([app.draw(20_000, levels, rng) for app in plain], axis=1)
    assert_same_law(quick.draw(rng, 20_000), slow)


@pytest.mark.slow
def test_pooled_weighting_is_the_flat_mean_of_what_was_drawn() -> None:
    data, rng = outcomes(5, ragged=True), np.random.default_rng(6)
    slow = np.array([hierarchical_loop(data, rng, Levels(), pooled=True) for _ in range(800)])
    assert_same_law(prepare(as_tree(data), weighting="pooled").draw(rng, 20_000), slow)


def test_many_rollouts_are_drawn_without_tables() -> None:
    """Binomials of the mean and variance of a draw without rollout noise, and that noise."""
    tree = as_tree(outcomes(14, ragged=False, rollouts=70))
    exact, still = prepare(tree), prepare(tree, Levels(rollouts=False))
    assert [app.binomials for app in exact.apps if isinstance(app, BalancedApp)] == [None, None]
    draws = [each.draw(np.random.default_rng(8), 20_000) for each in (exact, still)]
    np.testing.assert_allclose(draws[0].mean(axis=0), draws[1].mean(axis=0), atol=0.01)
    assert (draws[0].std(axis=0) > draws[1].std(axis=0)).all()


@pytest.mark.parametrize("ragged", [False, True], ids=["balanced", "ragged"])
def test_same_seed_same_digits_on_any_number_of_threads(ragged: bool) -> None:
    sampler = prepare(as_tree(outcomes(9, ragged=ragged)))
    one, four = (sampler.draw(np.random.default_rng(1), 2500, threads) for threads in (1, 4))
    assert np.array_equal(one, four)
    assert np.array_equal(one[:700], sampler.draw(np.random.default_rng(1), 700))
    assert not np.array_equal(one, sampler.draw(np.random.default_rng(2), 2500))


def test_interval_of_any_suite_statistic_and_of_every_app() -> None:
    tree = as_tree(outcomes(10, ragged=True))
    for statistic in (trees.mean, trees.median, trees.interquartile_mean):
        found = hierarchical_bootstrap(tree, np.random.default_rng(0), statistic=statistic)
        assert found.suite.low < found.suite.estimate < found.suite.high
    assert found.apps.estimate.tolist() == trees.app_rates(tree).tolist()
    assert found.apps.low.shape == (2,)


def test_these_scenarios_is_narrower_and_has_the_unbiased_variance() -> None:
    tree = as_tree(outcomes(11, ragged=True))
    rng = np.random.default_rng(0)
    these = hierarchical_bootstrap(tree, rng, estimand="these_scenarios", n_resamples=20_000)
    new = hierarchical_bootstrap(tree, rng, estimand="new_scenarios")
    closed = cluster_t_interval(tree, estimand="these_scenarios")
    assert these.suite.width < new.suite.width
    assert these.suite.width[0] == pytest.approx(closed.width[0], rel=0.05)


def test_one_rollout_says_nothing_about_these_scenarios() -> None:
    tree = trees.tree_from_rollouts(["a"] * 3, [1, 2, 3], [1, 0, 1])
    found = hierarchical_bootstrap(tree, np.random.default_rng(0), estimand="these_scenarios")
    assert np.isnan(found.suite.low).all()
    assert ONE_ROLLOUT in found.suite.notes
    closed = cluster_t_interval(tree, estimand="these_scenarios")
    assert np.isnan(closed.low).all()
    assert closed.notes == (ONE_ROLLOUT,)


def test_sampled_configurations_are_found_out_and_resampled_whole() -> None:
    rng = np.random.default_rng(12)
    axes = rng.integers(0, 10, (200, 3))
    tree = trees.tree_from_rollouts(["a"] * 200, np.arange(200) % 10, rng.random(200) < 0.5, axes)
    assert tree.filled_share() < SPARSE
    found = hierarchical_bootstrap(tree, rng)
    assert found.configurations == "whole"
    assert "sampled" in found.suite.notes[0]
    asked = hierarchical_bootstrap(tree, rng, configurations="axes")
    assert asked.configurations == "axes"
    assert asked.suite.width > found.suite.width


def test_one_scenario_and_all_failed_are_defined_and_explained() -> None:
    tree = trees.tree_from_rollouts(["a", "a", "b", "b"], [1, 1, 2, 3], [0, 0, 0, 0])
    found = hierarchical_bootstrap(tree, np.random.default_rng(0))
    assert found.suite.low == found.suite.estimate == 0 < found.suite.high < 1
    assert ONE_SCENARIO in found.suite.notes
    assert cluster_t_interval(tree).notes == (ONE_SCENARIO,)
    assert np.isnan(cluster_t_interval(tree).low).all()


def test_few_scenarios_are_told_and_have_the_interval_over_scenarios() -> None:
    """``benchmarks.coverage`` has how often the other one covers there."""

    def found(scenarios: int) -> tuple[bool, bool]:
        apps, outcomes = ["a"] * scenarios + ["b"] * 9, [0, 1] * ((scenarios + 9) // 2 + 1)
        size = len(apps)
        tree = trees.tree_from_rollouts(apps, range(size), outcomes[:size])
        suite = hierarchical_bootstrap(tree, np.random.default_rng(0)).suite
        limits = clustered_success(tree)[0]
        return CLUSTERED in suite.notes, bool((suite.low == limits.low).all())

    assert found(2) == found(ENOUGH_SCENARIOS - 1) == (True, True)
    assert found(ENOUGH_SCENARIOS) == (False, False)


@pytest.mark.parametrize("scenarios", [2, 7])
@pytest.mark.parametrize("apps", [1, 5])
def test_of_few_scenarios_the_interval_covers(scenarios: int, apps: int) -> None:
    """Rates of scenarios are uniform, three runs each. Percentiles cover 85 to 93 % here."""
    rng, covered, draws = np.random.default_rng(scenarios), 0, 300
    app = np.repeat(np.arange(apps), scenarios)
    for _ in range(draws):
        hits = rng.binomial(3, rng.random(len(app)))
        tree = trees.tree_from_cells(app, np.arange(len(app)), hits, np.full(len(app), 3))
        covered += bool(clustered_success(tree)[0].covers(0.5)[0])
    assert covered / draws >= 0.94 - 3 * (0.94 * 0.06 / draws) ** 0.5


def test_scenarios_of_uneven_apps_weigh_as_in_the_estimate() -> None:
    """Two apps of 2 and 6 scenarios: the mean of their rates, .75 and .25, each with its runs."""
    app = [0, 0, 1, 1, 1, 1, 1, 1]
    tree = trees.tree_from_cells(app, range(8), [2, 1, 0, 1, 0, 1, 0, 1], [2] * 8)
    suite, each = clustered_success(tree)
    assert suite.estimate == pytest.approx([0.5])
    assert each.estimate == pytest.approx([0.75, 0.25])
    assert suite.low < 0.5 < suite.high


def test_no_spread_between_scenarios_is_said() -> None:
    tree = trees.tree_from_rollouts(["a", "a"], [1, 2], [0, 0])
    found = cluster_t_interval(tree)
    assert found.low == found.high == 0
    assert "spread of zero" in found.notes[0]


def test_the_t_interval_of_one_app_is_the_textbooks() -> None:
    from scipy.stats import t

    success = [1, 0, 1, 1, 0, 1, 0, 0, 1, 1]
    tree = trees.tree_from_rollouts(["a"] * 10, np.arange(10) // 2, success)
    means = np.array(success).reshape(5, 2).mean(axis=1)
    low, high = t.interval(0.9, 4, means.mean(), means.std(ddof=1) / 5**0.5)
    ours = cluster_t_interval(tree, 0.9)
    assert (ours.low[0], ours.high[0]) == pytest.approx((low, high))


def test_a_switch_for_every_axis() -> None:
    tree = as_tree(outcomes(1, ragged=False))
    with pytest.raises(ValueError, match="3 switches for 2 axes"):
        prepare(tree, Levels(axes=(True, True, False)))


def run(model: SuiteModel, method: Method, experiments: int) -> Coverage:
    return simulate_coverage(
        model,
        method,
        np.random.default_rng(0),
        experiments=experiments,
        truth=model.population_mean(),
    )


def test_scenario_clusters_cover_as_well_without_resampling() -> None:
    found = run(FIGURE_1B, lambda outcomes, _: cluster_t_interval(tree_of(outcomes)), 400)
    assert found.coverage == pytest.approx(0.95, abs=0.025)
    assert found.width == pytest.approx(0.084, abs=0.002)
