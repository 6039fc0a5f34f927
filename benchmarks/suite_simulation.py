"""Suites with known success rates: Figure 1b and Table 3 of Statistical Precipice.

An app has a rate; its scenarios scatter around it, their configurations around them (normal,
clipped to [0, 1]), and rollouts are coin flips. The ladder adds one level of resampling a rung.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from scipy import special

from trajudge.stats.intervals import Floats, Interval, Ints
from trajudge.stats.suites import Levels, Tree, tree_from_cells

LADDER: dict[str, Levels] = {
    "rollouts": Levels(scenarios=False, axes=False),
    "rollouts + configurations": Levels(scenarios=False),
    "rollouts + configurations + scenarios": Levels(),
}


@dataclass(frozen=True, eq=False)
class SuiteModel:
    """Section 21.2's calibration: app rates (A,), and the spread below them."""

    app_rates: Floats
    scenarios: int = 8
    axes: tuple[int, ...] = (3, 3, 3)
    rollouts: int = 3
    scenario_sd: float = 0.25
    configuration_sd: float = 0.05

    def population_mean(self) -> float:
        """The mean rate after clipping, by quadrature over both normals."""
        z1, z2 = (special.ndtri((np.arange(m) + 0.5) / m) for m in (400, 100))
        scenario = np.clip(self.app_rates[:, None] + self.scenario_sd * z1, 0, 1)
        cell = np.clip(scenario[..., None] + self.configuration_sd * z2, 0, 1)
        return float(cell.mean())

    def simulate(self, rng: np.random.Generator) -> Ints:
        """0/1 outcomes, (A, S, L1, ..., LX, R)."""
        shape = (len(self.app_rates), self.scenarios)
        scenario = self.app_rates[:, None] + rng.normal(0, self.scenario_sd, shape)
        cells = np.clip(scenario, 0, 1).reshape(*shape, *(1 for _ in self.axes))
        cells = cells + rng.normal(0, self.configuration_sd, (*shape, *self.axes))
        rates = np.clip(cells, 0, 1)[..., None]
        return (rng.random((*shape, *self.axes, self.rollouts)) < rates).astype(np.int64)


@dataclass(frozen=True)
class Coverage:
    """Share of experiments whose interval covered, its standard error, and the mean width."""

    coverage: float
    standard_error: float
    width: float


def calibrated_apps(n_apps: int = 15) -> Floats:
    """Rates from .16 to .62 with mean .41: what section 21.2 prints of its calibration."""
    return np.asarray(0.16 + 0.46 * np.linspace(0, 1, n_apps) ** 0.83)


FIGURE_1B = SuiteModel(calibrated_apps())
TABLE_3 = SuiteModel(calibrated_apps(), scenarios=10, scenario_sd=0.0, configuration_sd=0.0)
FEW_SCENARIOS = tuple(
    SuiteModel(calibrated_apps(5), scenarios=n, axes=(3,), rollouts=1) for n in (2, 3, 4, 5, 8)
)
TABLE_3_HETEROGENEOUS = replace(TABLE_3, scenario_sd=0.08, configuration_sd=0.03)


def tree_of(outcomes: Ints) -> Tree:
    """The tree of simulated outcomes (A, S, L1, ..., LX, R)."""
    n_apps, scenarios, *axes, rollouts = outcomes.shape
    levels = np.array(list(product(*(range(size) for size in axes)))).reshape(prod(axes), -1)
    return tree_from_cells(
        app=np.repeat(np.arange(n_apps), scenarios * len(levels)),
        scenario=np.repeat(np.arange(n_apps * scenarios), len(levels)),
        successes=outcomes.sum(axis=-1).ravel(),
        rollouts=np.full(n_apps * scenarios * len(levels), rollouts),
        axes=np.tile(levels, (n_apps * scenarios, 1)),
    )


def simulate_coverage(
    model: SuiteModel,
    interval: Callable[[Ints, np.random.Generator], Interval],
    rng: np.random.Generator,
    *,
    experiments: int = 200,
    truth: float | None = None,
) -> Coverage:
    """How often ``interval(outcomes, rng)`` covers ``truth`` (the mean app rate by default)."""
    target = float(model.app_rates.mean()) if truth is None else truth
    found = [interval(model.simulate(rng), rng) for _ in range(experiments)]
    covered = float(np.mean([each.covers(target) for each in found]))
    error = (covered * (1 - covered) / experiments) ** 0.5
    return Coverage(covered, error, float(np.mean([each.width for each in found])))
