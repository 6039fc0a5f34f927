"""How far one environmental axis moves success, and how far chance alone would move it.

Source: Statistical Precipice, section 16, equation 2: the mean |difference| over matched pairs,
cells of one scenario that differ on one axis only. With few rollouts most of it is noise, which
the paper does not subtract: ``floor`` is its exact expectation when the pair's successes are
dealt again at random between its two cells, and ``excess`` is what the axis adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

from trajudge.eval.stats.interval import Floats, Ints
from trajudge.eval.stats.suites.tree import Tree


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Mean absolute difference along one axis, its noise floor, their difference, the tail.

    ``differences`` (P,) are signed, first level minus second. All ``nan`` without a pair.
    """

    mad: float
    floor: float
    excess: float
    percentile_90: float
    differences: Floats


def mad_decomposition(tree: Tree, axis: int) -> Sensitivity:
    """Equation 2 along ``axis``, with the exact permutation floor."""
    first, second = matched_pairs(tree, axis)
    differences = tree.rates[first] - tree.rates[second]
    if not len(first):
        return Sensitivity(np.nan, np.nan, np.nan, np.nan, differences)
    floor = float(noise_floor(tree, first, second).mean())
    sizes = np.abs(differences)
    mad = float(sizes.mean())
    return Sensitivity(mad, floor, mad - floor, float(np.quantile(sizes, 0.9)), differences)


def matched_pairs(tree: Tree, axis: int) -> tuple[Ints, Ints]:
    """Cells (P,) and (P,) of one scenario that differ on ``axis`` and on nothing else."""
    others = np.delete(tree.levels, axis, axis=1)
    keys = np.column_stack([tree.scenario, others])
    order = np.lexsort((tree.levels[:, axis], *keys.T[::-1]))
    group = np.cumsum((np.diff(keys[order], axis=0, prepend=-1) != 0).any(axis=1))
    reach = np.arange(1, np.bincount(group).max())
    starts = [np.flatnonzero(group[:-step] == group[step:]) for step in reach]
    first = np.concatenate([np.zeros(0, dtype=np.int64), *starts])
    steps = np.repeat(reach, [len(each) for each in starts])
    return order[first], order[first + steps]


def noise_floor(tree: Tree, first: Ints, second: Ints) -> Floats:
    """E|difference| of every pair (P,) when its successes are dealt at random (hypergeometric)."""
    total = tree.successes[first] + tree.successes[second]
    deals = np.stack([total, tree.rollouts[first], tree.rollouts[second]], axis=1)
    kinds, which = np.unique(deals, axis=0, return_inverse=True)
    expected = [_expected_gap(int(k), int(n), int(m)) for k, n, m in kinds]
    return np.asarray(expected)[which.ravel()]


def axis_value_shifts(tree: Tree, axis: int) -> Floats:
    """Shifts (P,) between a scenario's rates under two values of ``axis`` (figure 4).

    Each rate averages the scenario's cells with that value; feed ``exceedance_curve``.
    """
    keys = np.column_stack([tree.scenario, tree.levels[:, axis]])
    values, which = np.unique(keys, axis=0, return_inverse=True)
    rates = np.bincount(which.ravel(), tree.rates) / np.bincount(which.ravel())
    bounds = np.r_[np.flatnonzero(np.diff(values[:, 0], prepend=-1)), len(values)]
    shifts = [np.zeros(0)]
    for start, stop in pairwise(bounds.tolist()):
        i, j = np.triu_indices(stop - start, 1)
        shifts.append(rates[start + i] - rates[start + j])
    return np.concatenate(shifts)


def _expected_gap(successes: int, n: int, m: int) -> float:
    k = np.arange(max(0, successes - m), min(n, successes) + 1)
    log_pmf = (
        _log_choose(n, k) + _log_choose(m, successes - k) - _log_choose(n + m, np.array(successes))
    )
    return float(np.exp(log_pmf) @ np.abs(k / n - (successes - k) / m))


def _log_choose(n: int, k: Ints) -> Floats:
    return np.asarray(-np.log1p(n) - scipy.special.betaln(n - k + 1, k + 1))
