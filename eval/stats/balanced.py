"""Hierarchical resampling of one app whose scenarios are equal full factorials: exact and fast.

An axis of L levels drawn L times has few multiplicity vectors, so a scenario's configuration
weights are one of few types and a draw is one integer. Copies of cells with the same number of
successes k are exchangeable: their rollouts are one Binomial(R * copies, k / R). Both are exact
in law, and neither draws an index per rollout.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eval.stats.interval import Floats, Ints
from eval.stats.levels import Leaf, Levels

MAX_DRAWS = 2**16
"""Distinct ordered draws over all axes that one lookup table may list."""

MAX_COUNTS = 2**22
"""Counts that an app's table may hold: 8 MB. Larger apps take the general form."""


@dataclass(frozen=True, eq=False)
class BalancedApp:
    """What a draw needs; rows of ``copies`` are (type, scenario) pairs in that order.

    ``first_row`` (D,) is where an ordered draw of all axes finds its type in ``copies``
    (T * S, U), which counts the cells having ``k`` (U,) successes, ascending, with k > 0;
    ``rollouts`` is R and ``cells`` the number of configurations of each of ``scenarios``.
    """

    first_row: Ints
    copies: NDArray[np.uint16]
    k: Ints
    scenarios: int
    cells: int
    rollouts: int

    def draw(self, n: int, levels: Levels, leaf: Leaf, rng: np.random.Generator) -> Floats:
        """``n`` replicates of the app's success rate, (n,)."""
        copies = self._count(n, levels.scenarios, rng)
        if levels.rollouts and leaf == "exact":
            successes = self._exact_successes(copies, rng)
        else:
            expected = copies.astype(np.int64) @ self.k
            successes = expected.astype(float)
            if levels.rollouts:
                spread = self.k * (self.rollouts - self.k) / self.rollouts
                successes += np.sqrt(copies @ spread) * rng.standard_normal(n)
        return np.asarray(successes / (self.scenarios * self.cells * self.rollouts))

    def _exact_successes(self, copies: NDArray[np.uint16], rng: np.random.Generator) -> Floats:
        """One binomial for each replicate and number of successes, summed, (n,).

        Drawn in order of their number of tries: numpy prepares each (tries, chance) once only.
        """
        unsure = self.k < self.rollouts
        counts = np.ascontiguousarray(copies[:, unsure].T)
        order = np.argsort(counts, axis=1, kind="stable")
        tries = np.take_along_axis(counts, order, axis=1).astype(np.int64) * self.rollouts
        drawn = rng.binomial(tries, self.k[unsure, None] / self.rollouts)
        sure = self.rollouts * copies[:, ~unsure].sum(axis=1, dtype=np.int64)
        return np.asarray(np.bincount(order.ravel(), drawn.ravel(), len(copies)) + sure)

    def _count(
        self, n: int, resample_scenarios: bool, rng: np.random.Generator
    ) -> NDArray[np.uint16]:
        """Cells by number of successes over all drawn scenarios, (n, U)."""
        size = (self.scenarios, n)
        scenario = np.arange(self.scenarios, dtype=np.uint16)[:, None]
        if resample_scenarios:
            scenario = rng.integers(0, self.scenarios, size=size, dtype=np.uint16)
        row = self.first_row[rng.integers(0, len(self.first_row), size=size, dtype=np.uint16)]
        row += scenario
        counted = np.zeros((n, len(self.k)), dtype=np.uint16)
        drawn = np.empty_like(counted)
        for slot in row:
            counted += np.take(self.copies, slot, axis=0, out=drawn, mode="clip")
        return counted


def balanced_app(
    successes: Ints, levels: Ints, rollouts: Ints, axes: tuple[bool, ...]
) -> BalancedApp | None:
    """Tables for an app from its cells, or None where the app is not of this shape.

    ``successes`` and ``rollouts`` (S, C), ``levels`` (S, C, X); ``axes`` (X,) says which axes
    are resampled. Rows of cells are in lexicographic order of their levels.
    """
    scenarios, cells = successes.shape
    grid = [np.unique(axis) for axis in levels[0].T]
    if (levels != levels[0]).any() or np.prod([len(axis) for axis in grid]) != cells:
        return None
    if (rollouts != rollouts[0, 0]).any() or scenarios * cells >= 2**16:
        return None
    sizes = [len(axis) for axis, on in zip(grid, axes, strict=True) if on]
    if np.prod([float(size) ** size for size in sizes]) > MAX_DRAWS:
        return None
    types, weights = _types(tuple(len(axis) for axis in grid), axes)
    k = np.unique(successes[successes > 0]) if successes.any() else rollouts[0, :1]
    if len(weights) * scenarios * len(k) > MAX_COUNTS:
        return None
    marks = (successes.T[:, :, None] == k).reshape(cells, -1).astype(np.float32)
    copies = (weights @ marks).astype(np.uint16).reshape(-1, len(k))
    first_row = types.astype(np.int64) * scenarios
    return BalancedApp(first_row, copies, k, scenarios, cells, int(rollouts[0, 0]))


@lru_cache(maxsize=16)
def _types(
    sizes: tuple[int, ...], axes: tuple[bool, ...]
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    """Type of every ordered draw (D,), and weights of the cells by type (T, C)."""
    types, weights = np.zeros(1, dtype=np.uint16), np.ones((1, 1), dtype=np.float32)
    for size, resampled in zip(sizes, axes, strict=True):
        multiplicity, kind = np.ones((1, size)), np.zeros(1, dtype=np.int64)
        if resampled:
            draws = np.array(list(product(range(size), repeat=size)))
            counts = (draws[:, :, None] == np.arange(size)).sum(axis=1)
            multiplicity, kind = np.unique(counts, axis=0, return_inverse=True)
        types = (types[:, None] * len(multiplicity) + kind.ravel()).ravel().astype(np.uint16)
        weights = np.einsum("ac,bl->abcl", weights, multiplicity.astype(np.float32))
        weights = weights.reshape(weights.shape[0] * weights.shape[1], -1)
    return types, weights
