"""Hierarchical resampling of any app: missing cells, unequal axes and rollouts.

Every drawn copy of a scenario draws its own axes and rollouts (nested, as section 4.3 says). A
cell's weight is the product of its levels' multiplicities; cells that were never run have none.
A draw that hits no cell that was run is drawn again, up to ``REDRAWS`` times, after which the
scenario stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.stats.indices import Multiplicities
from trajudge.eval.stats.interval import Floats, Ints
from trajudge.eval.stats.suites.levels import Leaf, Levels
from trajudge.eval.stats.suites.tree import Weighting

REDRAWS = 100


@dataclass(frozen=True, eq=False)
class RaggedScenario:
    """One scenario's cells: ``successes`` and ``rollouts`` (C,), ``levels`` (C, X)."""

    successes: Ints
    rollouts: Ints
    levels: Ints


@dataclass(frozen=True, eq=False)
class RaggedApp:
    """An app's scenarios, and how its cells are averaged and their rollout noise scaled.

    ``axes`` (X,) says which axes are resampled. ``unbiased`` widens rollout noise by
    R / (R - 1), because resampling R outcomes under-states their variance by that factor.
    """

    scenarios: tuple[RaggedScenario, ...]
    axes: tuple[bool, ...]
    weighting: Weighting = "nested"
    unbiased: bool = False

    def draw(self, n: int, levels: Levels, leaf: Leaf, rng: np.random.Generator) -> Floats:
        """``n`` replicates of the app's success rate, (n,)."""
        size = (n, len(self.scenarios))
        drawn = np.broadcast_to(np.arange(size[1]), size)
        if levels.scenarios:
            drawn = rng.integers(0, size[1], size=size)
        order = np.argsort(drawn.ravel(), kind="stable")
        counts = np.bincount(drawn.ravel(), minlength=size[1])
        earned, possible = np.zeros(n * size[1]), np.zeros(n * size[1])
        for scenario, places in zip(
            self.scenarios, np.split(order, np.cumsum(counts)[:-1]), strict=True
        ):
            weights = _cell_weights(scenario, self.axes, len(places), rng)
            earned[places], possible[places] = self._outcomes(
                scenario, weights, leaf if levels.rollouts else None, rng
            )
        earned, possible = earned.reshape(size), possible.reshape(size)
        if self.weighting == "pooled":
            return np.asarray(earned.sum(axis=1) / possible.sum(axis=1))
        return np.asarray((earned / possible).mean(axis=1))

    def _outcomes(
        self, scenario: RaggedScenario, weights: Floats, leaf: Leaf | None, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Successes earned and possible in each drawn copy, both (D,), from weights (D, C).

        Pooled weighting counts rollouts; nested weighting counts every cell once.
        """
        k, r = scenario.successes, scenario.rollouts
        worth = r.astype(float) if self.weighting == "pooled" else np.ones(len(r))
        possible = weights @ worth
        expected = weights @ (worth * k / r)
        if leaf is None:
            return expected, possible
        with np.errstate(divide="ignore", invalid="ignore"):
            widen = np.sqrt(r / (r - 1)) if self.unbiased else np.ones(len(r))
        if leaf == "gaussian":
            variance = weights @ ((worth * widen / r) ** 2 * k * (r - k) / r)
            return expected + np.sqrt(variance) * rng.standard_normal(len(weights)), possible
        scale = worth * widen / r
        unsure = (k > 0) & (k < r)
        kinds, member = np.unique(np.stack([k, r])[:, unsure], axis=1, return_inverse=True)
        marks = (member.ravel()[:, None] == np.arange(kinds.shape[1])).astype(float)
        tries = (weights[:, unsure] @ marks).astype(np.int64) * kinds[1]
        chance = kinds[0] / kinds[1]
        noise = rng.binomial(tries, chance) - tries * chance
        first = np.argmax(marks, axis=0) if marks.size else np.zeros(0, dtype=np.int64)
        return expected + noise @ scale[unsure][first], possible


def _cell_weights(
    scenario: RaggedScenario, axes: tuple[bool, ...], n: int, rng: np.random.Generator
) -> Floats:
    """Count how often each of ``n`` copies draws each cell, (n, C); never all zero."""
    weights = _axis_product(scenario.levels, axes, n, rng)
    for _ in range(REDRAWS):
        empty = np.flatnonzero(weights.sum(axis=1) == 0)
        if not len(empty):
            return weights
        weights[empty] = _axis_product(scenario.levels, axes, len(empty), rng)
    weights[weights.sum(axis=1) == 0] = 1
    return weights


def _axis_product(
    levels: Ints, axes: tuple[bool, ...], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    weights = np.ones((n, len(levels)))
    for axis, resampled in zip(levels.T, axes, strict=True):
        values, code = np.unique(axis, return_inverse=True)
        if resampled and len(values) > 1:
            weights *= Multiplicities([len(values)], n).draw(rng)[:, code.ravel()]
    return weights
