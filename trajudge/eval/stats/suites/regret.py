"""What choosing between two agents on too little data costs, app by app.

Source: Statistical Precipice, section 6.2, figure 1c: the probability of selecting the inferior
agent, from split halves at one configuration per scenario, times the gap on all the data. The text
leaves open what is halved, so both readings are here, by name: "rollouts", half the rollouts of
every scenario; "scenarios", all rollouts of half the scenarios, which varies by scenario too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.eval.stats.streams import chunk_size
from trajudge.eval.stats.suites.tree import Tree, app_rates

Halves = Literal["rollouts", "scenarios"]


@dataclass(frozen=True, eq=False)
class Regret:
    """Of every app (A,): first rate minus second, P(the worse is selected), their product."""

    gap: Floats
    wrong: Floats
    regret: Floats

    def incurred(self, declared: Bools) -> float:
        """Total over the apps (A,) where a method declares a winner."""
        return float(self.regret[declared].sum())


def expected_regret(
    first: Tree,
    second: Tree,
    rng: np.random.Generator,
    n_splits: int = 500,
    halves: Halves = "rollouts",
) -> Regret:
    """Regret of selecting on half the data at one cell per scenario: half the rollouts of each (at
    least one), or of every app half the scenarios (at least one) with all their rollouts.

    Both trees must hold the same cells. A tie selects either with equal chance.
    """
    for name in ("app", "scenario", "levels"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise ValueError("the two agents were not run on the same cells: match them first")
    cells = np.diff(np.r_[first.scenario_starts, len(first.scenario)])
    wrong = np.zeros(len(first.app_names))
    gap = app_rates(first) - app_rates(second)
    step = chunk_size(len(cells))
    for start in range(0, n_splits, step):
        n = min(step, n_splits - start)
        chosen = first.scenario_starts + rng.integers(0, cells, size=(n, len(cells)))
        if halves == "rollouts":
            shown = _half_rates(first, chosen, rng) - _half_rates(second, chosen, rng)
        else:
            shown = (first.rates[chosen] - second.rates[chosen]) * _half(first.scenario_app, n, rng)
        sums = np.add.reduceat(shown, np.flatnonzero(np.diff(first.scenario_app, prepend=-1)), 1)
        lead = np.where(np.abs(sums) < 1e-12, 0, np.sign(sums))
        wrong += ((1 - np.sign(gap) * lead) / 2).sum(axis=0)
    wrong = np.where(gap == 0, 0.0, wrong / n_splits)
    return Regret(gap, wrong, wrong * np.abs(gap))


def _half_rates(tree: Tree, cells: Ints, rng: np.random.Generator) -> Floats:
    """Success rate on a random half of each chosen cell's rollouts, same shape as ``cells``."""
    k, n = tree.successes[cells], tree.rollouts[cells]
    half = np.maximum(n // 2, 1)
    return np.asarray(rng.hypergeometric(k, n - k, half) / half)


def _half(app: Ints, n: int, rng: np.random.Generator) -> Bools:
    """Which scenarios are shown in each of ``n`` splits (n, S): half of every app's, which ``app``
    (S,) names in order."""
    sizes = np.bincount(app)
    order = np.lexsort((rng.random((n, len(app))), np.broadcast_to(app, (n, len(app)))))
    rank = np.argsort(order, axis=1) - (np.cumsum(sizes) - sizes)[app]
    return np.asarray(rank < np.maximum(sizes // 2, 1)[app])
