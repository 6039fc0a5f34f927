"""Outcomes of agents as a tree: apps, scenarios, configurations, rollouts.

Source: Statistical Precipice, sections 4.1 and 4.3. A configuration is one level on each
environmental axis. Trees may be ragged: any number of scenarios, any cells missing, any number
of rollouts in a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Ints

Weighting = Literal["nested", "pooled"]
SuiteStatistic = Callable[[Floats], Floats]
"""App rates (..., A) to one number each (...)."""


@dataclass(frozen=True, eq=False)
class Tree:
    """One row per cell (configuration of a scenario), scenarios contiguous within apps.

    ``app`` and ``scenario`` (M,) are codes from 0 (scenarios counted over the whole suite),
    ``levels`` (M, X) codes on the X axes, ``successes`` and ``rollouts`` (M,) counts.
    ``app_names`` (A,) are the labels in the order of the codes.
    """

    app: Ints
    scenario: Ints
    levels: Ints
    successes: Ints
    rollouts: Ints
    app_names: tuple[object, ...]

    @cached_property
    def rates(self) -> Floats:
        """Success rate of every cell, (M,)."""
        return np.asarray(self.successes / self.rollouts)

    @cached_property
    def scenario_starts(self) -> Ints:
        """First cell of every scenario, (S,)."""
        return np.flatnonzero(np.diff(self.scenario, prepend=-1))

    @cached_property
    def scenario_app(self) -> Ints:
        """The app of every scenario, (S,)."""
        return self.app[self.scenario_starts]

    def filled_share(self) -> float:
        """Cells that were run, out of the product of the levels that each scenario uses."""
        possible = np.ones(len(self.scenario_starts))
        for axis in self.levels.T:
            base = axis.max() + 1
            used = np.unique(self.scenario * base + axis)
            possible *= np.bincount(used // base)
        return float(len(self.app) / possible.sum())


def tree_from_rollouts(
    app: ArrayLike, scenario: ArrayLike, success: ArrayLike, axes: ArrayLike | None = None
) -> Tree:
    """Build a tree from one row per rollout: labels (N,), 0/1 outcomes (N,), axis labels (N, X)."""
    outcome = np.asarray(success)
    if not np.isin(outcome, (0, 1)).all():
        raise ValueError("every rollout's outcome must be 0 or 1: settle failed rollouts first")
    return tree_from_cells(app, scenario, outcome, np.ones(len(outcome)), axes)


def tree_from_cells(
    app: ArrayLike,
    scenario: ArrayLike,
    successes: ArrayLike,
    rollouts: ArrayLike,
    axes: ArrayLike | None = None,
) -> Tree:
    """Build a tree from counts, adding up rows of one cell; shapes as in ``tree_from_rollouts``."""
    k, n = np.asarray(successes, dtype=np.int64), np.asarray(rollouts, dtype=np.int64)
    if not len(k):
        raise ValueError("no rollouts: a tree needs at least one")
    if not ((k >= 0) & (k <= n) & (n > 0)).all():
        raise ValueError("every cell needs at least one rollout and 0 <= successes <= rollouts")
    names, app_code = np.unique(np.asarray(app), return_inverse=True)
    table = np.zeros((len(k), 0)) if axes is None else np.asarray(axes).reshape(len(k), -1)
    levels = [np.unique(axis, return_inverse=True)[1] for axis in table.T]
    columns = [app_code, np.unique(np.asarray(scenario), return_inverse=True)[1], *levels]
    codes = np.stack(columns, axis=1).astype(np.int64)
    cells, inverse = _distinct_rows(codes)
    new = (np.diff(cells[:, :2], axis=0, prepend=-1) != 0).any(axis=1)
    return Tree(
        app=cells[:, 0],
        scenario=np.cumsum(new) - 1,
        levels=cells[:, 2:],
        successes=np.bincount(inverse, weights=k).astype(np.int64),
        rollouts=np.bincount(inverse, weights=n).astype(np.int64),
        app_names=tuple(names.tolist()),
    )


def _distinct_rows(codes: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of ``codes`` (N, K) in their order, and which of them each row is.
    Rows are told apart by one number each, where it can hold them: quicker to sort."""
    sizes = codes.max(axis=0) + 1
    if prod(sizes.tolist()) >= 2**62:
        cells, inverse = np.unique(codes, axis=0, return_inverse=True)
        return cells, inverse.ravel()
    numbers = np.ravel_multi_index(tuple(codes.T), tuple(sizes.tolist()))
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return codes[first], inverse


def scenario_rates(tree: Tree) -> Floats:
    """Mean over configurations of the mean over rollouts, (S,)."""
    cells = np.diff(np.r_[tree.scenario_starts, len(tree.scenario)])
    return np.asarray(np.add.reduceat(tree.rates, tree.scenario_starts) / cells)


def app_rates(tree: Tree, weighting: Weighting = "nested") -> Floats:
    """Success rate of every app, (A,).

    "nested" is the mean of means: each scenario counts once, as in the template-macro mean.
    "pooled" is the flat mean over rollouts. The two agree on balanced trees.
    """
    if weighting == "pooled":
        return np.asarray(
            np.bincount(tree.app, tree.successes) / np.bincount(tree.app, tree.rollouts)
        )
    scenarios = np.bincount(tree.scenario_app)
    return np.asarray(np.bincount(tree.scenario_app, scenario_rates(tree)) / scenarios)


def mean(rates: Floats) -> Floats:
    """Compute the suite statistic of section 4.3: every app counts the same."""
    return np.asarray(rates.mean(axis=-1))


def median(rates: Floats) -> Floats:
    """Median over apps."""
    return np.asarray(np.median(rates, axis=-1))


def trimmed_mean(share: float) -> SuiteStatistic:
    """Mean without the ``floor(share * A)`` lowest and highest apps (section 21.2)."""
    if not 0 <= share < 0.5:
        raise ValueError(f"the share trimmed from each end must be in [0, 0.5), not {share!r}")

    def statistic(rates: Floats) -> Floats:
        cut = int(share * rates.shape[-1])
        middle = np.sort(rates, axis=-1)[..., cut : rates.shape[-1] - cut]
        return np.asarray(middle.mean(axis=-1))

    return statistic


def interquartile_mean(rates: Floats) -> Floats:
    """Mean of the middle half of apps' rates (..., A): a quarter is trimmed from each end (...)."""
    return trimmed_mean(0.25)(rates)
