"""The intervals hold the truth, known by design or by all real tasks, as often as they promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.worlds.cluster_designs import (
    Design,
    real_designs,
    score_designs,
    stratified_designs,
    synthetic_designs,
)
from tests.worlds.comparisons import (
    coverage_of_differences,
    coverage_of_tau,
    pair_designs,
    ranking_designs,
)
from tests.worlds.coverage import Coverage, coverage_of_scores, coverage_of_verdicts

REPLICATES = 250


def measured(designs: list[Design]) -> list[Coverage]:
    return [
        cell
        for number, design in enumerate(designs)
        if design.positives >= 20
        for cell in coverage_of_verdicts(design, REPLICATES, np.random.default_rng(number))
    ]


def held(cells: list[Coverage]) -> None:
    """Mean at least 94 %, each at least 91 %, but for Monte Carlo error."""
    for metric in {cell.metric for cell in cells}:
        shares = [cell.share for cell in cells if cell.metric == metric]
        assert np.mean(shares) >= 0.94 - 3 * 0.014 / len(shares) ** 0.5, metric
    assert [cell for cell in cells if cell.n > 50 and cell.share < 0.91 - 4 * cell.error] == []


def test_intervals_cover_where_tasks_are_beta_binomial() -> None:
    cells = measured([*synthetic_designs(every=59)])
    raw = [cell.share for cell in cells if cell.metric == "precision, raw Wilson"]
    assert min(raw) < 0.85  # trajectories of one task are not independent
    held([cell for cell in cells if "raw" not in cell.metric])


def test_intervals_cover_in_strata_that_differ() -> None:
    cells = measured([*stratified_designs(every=23)])
    held([cell for cell in cells if "raw" not in cell.metric])


def test_intervals_of_scores_cover() -> None:
    designs = [design for design in score_designs(every=13) if design.tasks <= 100]
    held([c for d in designs for c in coverage_of_scores(d, REPLICATES, np.random.default_rng(0))])


def test_differences_between_judges_cover() -> None:
    designs = [design for design in pair_designs(every=41) if design.positives >= 20]
    rng = np.random.default_rng(5)
    found = [each for d in designs for each in coverage_of_differences(d, REPLICATES, rng)]
    shares = [each.share for each in found]
    assert np.mean(shares) >= 0.94 - 3 * 0.014 / len(shares) ** 0.5
    assert min(shares) >= 0.91 - 4 * (0.91 * 0.09 / REPLICATES) ** 0.5


@pytest.mark.slow
def test_kendalls_tau_covers_where_percentiles_do_not() -> None:
    rng = np.random.default_rng(6)
    found = [
        each
        for design in ranking_designs()
        if design.agents in (2, 10) and design.tasks == 100 and design.spread in (0.0, 0.2)
        for each in coverage_of_tau(design, 40, rng)
    ]
    shares = {"tau": [1.0], "tau, percentiles": [1.0]}
    for each in found:
        shares[each.metric].append(each.share)
    assert min(shares["tau"]) >= 0.95 - 4 * (0.95 * 0.05 / 40) ** 0.5
    assert min(shares["tau, percentiles"]) < 0.5


@pytest.mark.real_data
def test_intervals_cover_on_resampled_agentrewardbench(arb: Path) -> None:
    designs = [
        design
        for design in real_designs(arb)
        if "webjudge-7b," in design.name and "Agent" not in design.name
    ]
    cells = measured(designs)
    overall = {c.metric: c.share for c in cells if c.design.endswith("webjudge-7b, overall")}
    assert overall["recall, raw Wilson"] < 0.91
    held([cell for cell in cells if "raw" not in cell.metric])
