"""Figure 1b's ladder and Table 3's widths, at a size that a test can afford.

The published 17 / 56 / 95 % come from 200 experiments (standard errors 2.7 / 3.5 / 1.5 points).
The text's nested resampler gives 21-26 / 55-59 / 94-95 % over thousands of experiments.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.samples import repeats
from tests.worlds.proportions import wald
from tests.worlds.suites import (
    FIGURE_1B,
    LADDER,
    TABLE_3,
    TABLE_3_HETEROGENEOUS,
    Coverage,
    Method,
    SuiteModel,
    crossed,
    crossed_replicates,
    nested,
    simulate_coverage,
    tree_of,
)
from trajudge.stats.suites import (
    Levels,
    cluster_t_interval,
    hierarchical_bootstrap,
    tree_from_rollouts,
)


def run(model: SuiteModel, method: Method, experiments: int) -> Coverage:
    return simulate_coverage(
        model,
        method,
        np.random.default_rng(0),
        experiments=experiments,
        truth=model.population_mean(),
    )


@pytest.mark.slow
def test_every_rung_of_the_ladder_raises_coverage() -> None:
    """160 experiments: tolerance of two and a half standard errors (10 points) a rung. The last
    rung is ``test_the_full_hierarchy_covers_ninety_five_percent``."""
    low, middle = (run(FIGURE_1B, nested(LADDER[name]), 160) for name in list(LADDER)[:2])
    assert low.coverage == pytest.approx(0.24, abs=0.10)
    assert middle.coverage == pytest.approx(0.57, abs=0.10)
    assert low.width == pytest.approx(0.013, abs=0.001)
    assert middle.width == pytest.approx(0.035, abs=0.001)


def test_one_pooled_proportion_covers_a_third_of_the_time() -> None:
    """Wald over all rollouts as if independent: 34-37 %, ± 7 points at 400 experiments."""
    found = run(FIGURE_1B, lambda outcomes, _: wald(outcomes.sum(), outcomes.size), 400)
    assert found.coverage == pytest.approx(0.36, abs=0.07)
    assert found.width == pytest.approx(0.020, abs=0.001)


@pytest.mark.slow
@pytest.mark.sampled
def test_the_full_hierarchy_covers_ninety_five_percent() -> None:
    """400 experiments, standard error 1.1 points: 95 ± 2 %."""
    full = run(FIGURE_1B, nested(Levels()), repeats(200, 400))
    assert full.coverage == pytest.approx(0.95, abs=0.02)
    assert full.width == pytest.approx(0.084, abs=0.002)


def test_scenario_clusters_cover_as_well_without_resampling() -> None:
    found = run(FIGURE_1B, lambda outcomes, _: cluster_t_interval(tree_of(outcomes)), 400)
    assert found.coverage == pytest.approx(0.95, abs=0.025)
    assert found.width == pytest.approx(0.084, abs=0.002)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("levels", "published", "by_the_text"),
    [
        (Levels(), 0.061, 0.0378),
        (Levels(rollouts=False), 0.046, 0.0351),
        (Levels(axes=False), 0.024, 0.0207),
        (Levels(scenarios=False, axes=False), 0.013, 0.0135),
    ],
    ids=repr,
)
def test_table_3s_widths_are_those_of_the_crossed_resampler(
    levels: Levels, published: float, by_the_text: float
) -> None:
    """Mean width of each resampler within 4 %, and the print's rounding.

    30 experiments; 150 of the crossed rollouts, whose width rests on 30 degrees of freedom. A half
    of them but under ``make fuzz``.
    """
    rounding, count = 0.0005, repeats(15, 30)
    width = run(TABLE_3, crossed(levels), count if levels.scenarios else 5 * count).width
    assert width == pytest.approx(published, abs=0.04 * published + rounding)
    assert run(TABLE_3, nested(levels), count).width == pytest.approx(by_the_text, rel=0.04)


@pytest.mark.slow
def test_table_3s_heterogeneous_rows() -> None:
    """Full hierarchy: 100 %, width .065; rollouts alone: 60 % (± 12 points at 100), .013."""
    full = run(TABLE_3_HETEROGENEOUS, crossed(Levels()), 30)
    assert full.coverage == 1
    assert full.width == pytest.approx(0.065, rel=0.04)
    alone = Levels(scenarios=False, axes=False)
    rollouts = simulate_coverage(
        TABLE_3_HETEROGENEOUS, crossed(alone), np.random.default_rng(0), experiments=100
    )
    assert rollouts.coverage == pytest.approx(0.60, abs=0.12)


@pytest.mark.slow
@pytest.mark.sampled
def test_a_sample_of_a_large_grid_is_covered_by_whole_configurations() -> None:
    """20 of 10 x 10 x 10 configurations, one rollout each, as large benchmarks are run.

    40 experiments (20 but under ``make fuzz``), tolerance 8 points. Drawing axis levels
    independently is a quarter wider.
    """
    experiments = repeats(20, 40)
    rng, rates, rows = np.random.default_rng(0), FIGURE_1B.app_rates, 8 * 20
    covered, widths = 0, {"whole": 0.0, "axes": 0.0}
    for experiment in range(experiments):
        scenario = np.clip(rates[:, None] + rng.normal(0, 0.25, (15, 8)), 0, 1)
        cell = np.clip(scenario[..., None] + rng.normal(0, 0.05, (15, 8, 20)), 0, 1)
        tree = tree_from_rollouts(
            np.repeat(np.arange(15), rows),
            np.repeat(np.arange(15 * 8), 20),
            (rng.random(cell.shape) < cell).ravel(),
            rng.integers(0, 10, (15 * rows, 3)),
        )
        found = hierarchical_bootstrap(tree, rng, n_resamples=200)
        assert found.configurations == "whole"
        covered += int(found.suite.covers(FIGURE_1B.population_mean())[0])
        widths["whole"] += found.suite.width[0]
        if experiment < experiments / 4:
            asked = hierarchical_bootstrap(tree, rng, n_resamples=200, configurations="axes")
            widths["axes"] += asked.suite.width[0]
    assert covered / experiments == pytest.approx(0.947, abs=0.08)
    assert 4 * widths["axes"] > 1.15 * widths["whole"]


def test_without_clipping_the_population_mean_is_the_mean_rate() -> None:
    narrow = replace(FIGURE_1B, scenario_sd=0.01, configuration_sd=0.01)
    assert narrow.population_mean() == pytest.approx(FIGURE_1B.app_rates.mean(), abs=1e-6)
    assert FIGURE_1B.app_rates.mean() == pytest.approx(0.41, abs=0.001)


def test_crossed_weights_are_those_of_ix() -> None:
    """One app, one axis: the replicates' law is that of numpy.ix_ indexing."""
    rng = np.random.default_rng(3)
    outcomes = (rng.random((4, 3, 2)) < 0.5).astype(np.int64)
    fast = crossed_replicates([outcomes], rng, 20_000)[:, 0]
    slow = [
        outcomes[np.ix_(*(rng.integers(0, n, n) for n in outcomes.shape))].mean()
        for _ in range(4000)
    ]
    assert fast.mean() == pytest.approx(np.mean(slow), abs=4 * float(np.std(slow)) / 4000**0.5)
    assert fast.std() == pytest.approx(np.std(slow), rel=0.06)
