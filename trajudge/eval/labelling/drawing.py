"""The draw: a sample of fixed size with given inclusion probabilities; the order of the work."""

from __future__ import annotations

import numpy as np

from trajudge.stats.intervals import Bools, Floats, Ints


def draw(chances: Floats, strata: Ints, rng: np.random.Generator) -> Ints:
    """Draw places (n,) so that each is drawn with exactly its chance (N,), which add up to about n.

    Systematic sampling: one random start, then even steps along the cumulated chances, in random
    order within strata (N,) in random order; every stratum therefore gets its share.
    """
    stratum_order = rng.permutation(int(strata.max()) + 1) if len(strata) else strata
    order = np.lexsort((rng.random(len(chances)), stratum_order[strata]))
    edges = np.cumsum(chances[order])
    marks = np.arange(rng.random(), edges[-1] if len(edges) else 0.0, 1.0)
    # Rounding must not put a mark behind the last edge.
    return np.sort(order[np.minimum(np.searchsorted(edges, marks, side="right"), len(edges) - 1)])


def doubled(size: int, fraction: float, rng: np.random.Generator) -> Bools:
    """Choose which of ``size`` items a second person labels."""
    second = np.zeros(size, dtype=bool)
    second[rng.permutation(size)[: round(size * fraction)]] = True
    return second


def round_robin(strata: Ints, rng: np.random.Generator) -> Ints:
    """Give every item (n,) its position, so that any first part has all strata alike."""
    shuffled = rng.permutation(len(strata))
    turn = np.zeros(len(strata))
    for stratum in np.unique(strata):
        inside = shuffled[strata[shuffled] == stratum]
        turn[inside] = (np.arange(len(inside)) + rng.random()) / len(inside)
    positions = np.empty(len(strata), dtype=np.int64)
    positions[np.argsort(turn, kind="stable")] = np.arange(len(strata))
    return positions
