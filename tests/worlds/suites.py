"""Suites with known success rates: Figure 1b and Table 3 of Statistical Precipice.

An app has a rate; its scenarios scatter around it, their configurations around them (normal,
clipped to [0, 1]), and rollouts are coin flips. The ladder adds one level of resampling a rung.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from scipy import special

from trajudge.stats.intervals import (
    Floats,
    Interval,
    Ints,
    one_thread,
    percentile_interval,
    stream,
    stream_key,
)
from trajudge.stats.suites import Levels, Tree, prepare, tree_from_cells

RESAMPLES = 250
Method = Callable[[Ints, np.random.Generator], Interval]

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
    interval: Method,
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


def nested(levels: Levels) -> Method:
    """The percentile interval of the mean app rate by nested draws, as the text describes them."""

    def interval(outcomes: Ints, rng: np.random.Generator) -> Interval:
        rates = prepare(tree_of(outcomes), levels).draw(rng, RESAMPLES)
        mean = rates.mean(axis=1, keepdims=True).T.copy()
        return percentile_interval(np.array([outcomes.mean()]), mean, 0.95)

    return interval


def crossed(levels: Levels) -> Method:
    """The same by draws crossed within an app, which give the widths that are printed."""

    def interval(outcomes: Ints, rng: np.random.Generator) -> Interval:
        rates = crossed_replicates(list(outcomes), rng, RESAMPLES, levels)
        mean = rates.mean(axis=1, keepdims=True).T.copy()
        return percentile_interval(np.array([outcomes.mean()]), mean, 0.95)

    return interval


def crossed_replicates(
    apps: Sequence[Ints], rng: np.random.Generator, n_resamples: int, levels: Levels | None = None
) -> Floats:
    """Draw replicates (B, A) of app rates from full arrays of 0/1 outcomes, (S, L1, ..., LX, R).

    Section 4.3 describes nested draws (``stats.suites``), but the widths of its Table 3 come out
    only when scenarios, axis levels and rollouts are each drawn once per app and crossed, as
    ``numpy.ix_`` does: weights then multiply and intervals widen.
    """
    key = stream_key(rng)
    chosen = levels or Levels()
    with one_thread():
        rates = [
            _app_replicates(outcomes, stream(key, part), n_resamples, chosen)
            for part, outcomes in enumerate(apps)
        ]
    return np.stack(rates, axis=1)


def _app_replicates(outcomes: Ints, rng: np.random.Generator, n: int, levels: Levels) -> Floats:
    switches = (levels.scenarios, *levels.axis_switches(outcomes.ndim - 2), levels.rollouts)
    left = outcomes.astype(float)[..., None]  # the replicates' axis, last throughout
    for size, resampled in zip(reversed(outcomes.shape), reversed(switches), strict=True):
        left = left.reshape(-1, size, left.shape[-1])
        if not resampled:
            left = left.mean(axis=1)
            continue
        drawn = rng.integers(0, size, size=(n, size)) + size * np.arange(n)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=n * size).reshape(n, size) / size
        left = np.einsum("jsb,bs->jb", np.broadcast_to(left, (len(left), size, n)), weights)
    return np.broadcast_to(left.ravel(), (n,)).copy()
