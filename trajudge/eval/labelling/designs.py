"""Which trajectories to label: inclusion probabilities by strategy for a budget, and the draw.

Every probability is positive, so that whatever the strategy prefers, an estimate weighted by it is
unbiased. ``ppi`` is active inference (Zrnic and Candes 2024): probabilities in proportion to the
expected error of the prediction, here also to what a trajectory weighs in the judges' precisions,
which minimises the sum of the variances of the corrected estimates; a part is spread evenly, for
the case that the predictions are wrong. ``cascade`` does the same for the candidates of an
acceptance, ``accepted`` being what each of them accepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from trajudge.eval.labelling.settings import Strategy
from trajudge.stats.intervals import Bools, Floats, Ints, normal_quantile

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
EVEN_PART = 0.25
"""Share of the budget that every strategy but ``random`` spreads evenly."""
EVEN_PART_OF_DISAGREEMENT = 0.65
"""Most votes are unanimous and have no entropy: with less, the few errors among them weigh so much
that the intervals are too narrow."""


@dataclass(frozen=True, eq=False)
class KnownVerdicts:
    """What is known of each of N trajectories before they are labelled.

    ``probability`` (N,) of success, ``votes`` (N, V) of judges and rule with nan for none,
    ``accepted`` (N, J) by each evaluator, ``rule`` (N,) 1, 0 or nan, ``strata`` (N,) numbers.
    """

    probability: Floats
    votes: Floats
    accepted: Bools
    rule: Floats
    strata: Ints


def inclusion_probabilities(strategy: Strategy, budget: int, known: KnownVerdicts) -> Floats:
    """Return the probabilities (N,), which add up to ``budget`` (at most N)."""
    size = len(known.probability)
    if strategy == "random":
        return np.full(size, min(budget / size, 1.0))
    preference = {
        "stratified": lambda: _by_stratum(known.probability, known.strata),
        "disagreement": lambda: _entropy(known.votes),
        "low-confidence": lambda: _spread(known.probability),
        "ppi": lambda: _spread(known.probability) * _relevance(known.accepted),
        "audit": lambda: rule_error(known.probability, known.rule),
        "cascade": lambda: _spread(known.probability) * _relevance(known.accepted),
    }[strategy]()
    even = EVEN_PART_OF_DISAGREEMENT if strategy == "disagreement" else EVEN_PART
    return proportional(preference, budget, even)


def proportional(preference: Floats, budget: int, even_part: float = EVEN_PART) -> Floats:
    """Spread ``budget`` in proportion to ``preference`` (N,) >= 0, ``even_part`` of it evenly, with
    no probability above 1; what is cut goes to the others."""
    size = len(preference)
    if budget >= size:
        return np.ones(size)
    total = preference.sum()
    shares = preference / total if total > 0 else np.full(size, 1 / size)
    shares = (1 - even_part) * shares + even_part / size
    certain = np.zeros(size, dtype=bool)
    while True:
        rest = budget - certain.sum()
        chances = np.where(certain, 1.0, rest * shares / shares[~certain].sum())
        above = (chances > 1) & ~certain
        if not above.any():
            return np.asarray(chances)
        certain |= above


def rule_error(probability: Floats, rule: Floats) -> Floats:
    """Estimate the probability (N,) that the rule is wrong; that of an even guess without one."""
    return np.where(np.isnan(rule), 0.5, np.abs(probability - np.nan_to_num(rule)))


def expected_widths(chances: Floats, probability: Floats, accepted: Bools) -> Floats:
    """Predict the width (J,) of each judge's 95 % interval for precision under a design (N,),
    estimated with the predictions' help; nan for a judge that accepts nothing.

    It holds as far as ``probability`` (N,) does: the expected squared error of a prediction p is
    taken to be p (1 - p).
    """
    errors = probability * (1 - probability) * (1 - chances) / chances
    return _widths(errors @ accepted, accepted)


def expected_random_widths(budget: int, probability: Floats, accepted: Bools) -> Floats:
    """Predict the width (J,) from a simple random sample by its labels alone."""
    chance = min(budget / len(probability), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = (probability @ accepted) / accepted.sum(axis=0)
    variance = accepted.sum(axis=0) * precision * (1 - precision) * (1 - chance) / chance
    return _widths(variance, accepted)


def _widths(variance: Floats, accepted: Bools) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        half = normal_quantile(0.95) * np.sqrt(variance)
        return np.asarray(2 * half / accepted.sum(axis=0))


def _spread(probability: Floats) -> Floats:
    return np.sqrt(probability * (1 - probability))


def _relevance(accepted: Bools) -> Floats:
    """Weigh each trajectory (N,) by its part in the variances of the judges' precisions; evenly
    where no judge accepts anything."""
    sizes = accepted.sum(axis=0)
    weights = np.where(sizes > 0, 1 / np.maximum(sizes, 1) ** 2, 0)
    relevance = np.sqrt(accepted @ weights)
    return relevance if relevance.any() else np.ones(len(accepted))


def _entropy(votes: Floats) -> Floats:
    """Entropy (N,) of the votes in bits, 0 without votes."""
    counted = (~np.isnan(votes)).sum(axis=1)
    share = np.nansum(votes, axis=1) / np.maximum(counted, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(p > 0, -p * np.log2(p), 0) for p in (share, 1 - share)]
    return np.where(counted > 0, parts[0] + parts[1], 0)


def _by_stratum(probability: Floats, strata: Ints) -> Floats:
    """Prefer each trajectory (N,) by its stratum's standard deviation (Neyman's allocation)."""
    counts = np.bincount(strata)
    mean = np.bincount(strata, probability) / np.maximum(counts, 1)
    return _spread(mean)[strata]


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


def double_readings(size: int, fraction: float, rng: np.random.Generator) -> Bools:
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
