"""Hierarchical resampling of one app whose scenarios are equal full factorials: exact and fast.

An axis of L levels drawn L times has few multiplicity vectors, so a scenario's configuration
weights are one of few types and a draw is one integer. Copies of cells with the same number of
successes k are exchangeable: their rollouts are one Binomial(R * copies, k / R). Both are exact
in law, and neither draws an index per rollout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.stats.indices import uniform_indices
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.eval.stats.suites.binomial_tables import BinomialTables
from trajudge.eval.stats.suites.levels import Leaf, Levels

MAX_DRAWS = 2**16
"""Distinct ordered draws over all axes that one lookup table may list."""

MAX_COUNTS = 2**22
"""Counts that an app's table may hold: 4 to 8 MB. Larger apps take the general form."""


@dataclass(frozen=True, eq=False)
class BalancedApp:
    """What a draw needs; rows of ``copies`` are (type, scenario) pairs in that order.

    ``first_row`` (D,) is where an ordered draw of all axes finds its type in ``copies``
    (T * S, U), which counts the cells having ``k`` (U,) successes, ascending, with k > 0;
    ``rollouts`` is R and ``cells`` the number of configurations of each of ``scenarios``.
    ``binomials`` draw rollouts by lookup where they are given.
    """

    first_row: Ints
    copies: NDArray[np.unsignedinteger]
    k: Ints
    scenarios: int
    cells: int
    rollouts: int
    binomials: BinomialTables | None = None

    def draw(self, n: int, levels: Levels, leaf: Leaf, rng: np.random.Generator) -> Floats:
        """``n`` replicates of the app's success rate, (n,)."""
        copies = self._count(n, levels.scenarios, rng)
        if levels.rollouts and leaf == "exact":
            successes = self._exact_successes(copies, rng).astype(float)
        else:
            successes = (copies.astype(np.int64) @ self.k).astype(float)
            if levels.rollouts:
                spread = self.k * (self.rollouts - self.k) / self.rollouts
                successes += np.sqrt(copies @ spread) * rng.standard_normal(n)
        return np.asarray(successes / (self.scenarios * self.cells * self.rollouts))

    def _exact_successes(self, copies: NDArray[np.uint16], rng: np.random.Generator) -> Ints:
        """One binomial for each replicate and number of successes, summed, (n,)."""
        unsure = self.k < self.rollouts
        counts, k = np.ascontiguousarray(copies[:, unsure].T), self.k[unsure]
        sure = self.rollouts * copies[:, ~unsure].sum(axis=1, dtype=np.int64)
        if self.binomials is not None:
            return np.asarray(sure + self.binomials.successes(counts, k, rng))
        tries = counts.astype(np.int64) * self.rollouts
        return np.asarray(sure + rng.binomial(tries, k[:, None] / self.rollouts).sum(axis=0))

    def _count(
        self, n: int, resample_scenarios: bool, rng: np.random.Generator
    ) -> NDArray[np.uint16]:
        """Cells by number of successes over all drawn scenarios, (n, U)."""
        size = (self.scenarios, n)
        row = self.first_row[uniform_indices(len(self.first_row), n * size[0], rng)].reshape(size)
        if resample_scenarios:
            row += uniform_indices(self.scenarios, n * size[0], rng).reshape(size)
        else:
            row += np.arange(self.scenarios)[:, None]
        counted = np.zeros((n, len(self.k)), dtype=np.uint16)
        part, drawn = (np.empty(counted.shape, dtype=self.copies.dtype) for _ in range(2))
        room = np.iinfo(part.dtype).max // self.cells  # slots that a narrow sum can hold
        for start in range(0, len(row), room):
            np.take(self.copies, row[start], axis=0, out=part, mode="clip")
            for slot in row[start + 1 : start + room]:
                part += np.take(self.copies, slot, axis=0, out=drawn, mode="clip")
            counted += part
        return counted


def balanced_app(
    successes: Ints,
    levels: Ints,
    rollouts: Ints,
    axes: tuple[bool, ...],
    binomials: Callable[[int], BinomialTables | None],
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
    types, draws = _types(tuple(len(axis) for axis in grid), axes)
    k = np.unique(successes[successes > 0]) if successes.any() else rollouts[0, :1]
    if math.prod(map(len, draws)) * scenarios * len(k) > MAX_COUNTS:
        return None
    marks = successes.T[:, :, None] == k
    tries = int(rollouts[0, 0])
    return BalancedApp(
        first_row=types.astype(np.int64) * scenarios,
        copies=_copies(marks.reshape(cells, -1), draws).reshape(-1, len(k)),
        k=k,
        scenarios=scenarios,
        cells=cells,
        rollouts=tries,
        binomials=binomials(tries),
    )


def _copies(marks: Bools, draws: tuple[Ints, ...]) -> NDArray[np.unsignedinteger]:
    """Sum the ``marks`` (C, M) of the cells that each combined type draws, (T, M).

    Sums are taken axis by axis: the cells of a draw of levels are the sum over its levels.
    """
    cells, width = marks.shape
    counted: NDArray[np.unsignedinteger] = marks.astype(np.min_scalar_type(cells))[None]
    for drawn in draws:
        levels = counted.reshape(len(counted), drawn.shape[1], -1)
        summed = levels[:, drawn[:, 0]]
        for level in drawn.T[1:]:
            summed += levels[:, level]
        counted = summed.reshape(len(counted) * len(drawn), -1, width)
    return counted.reshape(-1, width)


@lru_cache(maxsize=16)
def _types(
    sizes: tuple[int, ...], axes: tuple[bool, ...]
) -> tuple[NDArray[np.uint16], tuple[Ints, ...]]:
    """List the combined type of every ordered draw (D,), and each axis' draws by type (T, L)."""
    types, draws = np.zeros(1, dtype=np.uint16), []
    for size, resampled in zip(sizes, axes, strict=True):
        ordered = np.arange(size)[None]
        if resampled:
            ordered = np.array(list(product(range(size), repeat=size)))
        unordered, kind = np.unique(np.sort(ordered, axis=1), axis=0, return_inverse=True)
        types = (types[:, None] * len(unordered) + kind.ravel()).ravel().astype(np.uint16)
        draws.append(unordered)
    return types, tuple(draws)
