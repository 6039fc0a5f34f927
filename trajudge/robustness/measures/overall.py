"""What all perturbations of a kind tell together of a judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.robustness.measures.differences import (
    RateDifference,
    on_the_same_runs,
    rate_difference,
)
from trajudge.robustness.measures.pairs import IDENTITY, PerturbedPairs
from trajudge.robustness.measures.rates import (
    NO_DIFFERENCE,
    NO_RATE,
    RobustnessRate,
    flips_of,
    rate,
)
from trajudge.robustness.model import Relation
from trajudge.trajectories.model import TrajectoryKey


class OverallRates(NamedTuple):
    """``noise``: flips when the same prompt is drawn again. ``consistency``: the runs whose verdict
    is the same under all of up to ``changes`` harmless changes. ``pair_accuracy``: both verdicts
    are right, over all changes that change the truth. ``precision`` and ``recall`` are those of the
    verdicts on the runs as they were. ``excess_flips``: flips under harmless changes minus those
    when the same prompt is drawn again, on the same runs. ``coverage_lost``: no verdict under a
    change of those that had one, over all changes."""

    noise: RobustnessRate = NO_RATE
    consistency: RobustnessRate = NO_RATE
    changes: int = 0
    pair_accuracy: RobustnessRate = NO_RATE
    precision: RobustnessRate = NO_RATE
    recall: RobustnessRate = NO_RATE
    excess_flips: RateDifference = NO_DIFFERENCE
    coverage_lost: RobustnessRate = NO_RATE


class Undetectable(NamedTuple):
    """A perturbation under which ``variants`` of ``of`` failures have, byte by byte, the prompts of
    a run that succeeded: no judge that is shown this can tell them apart."""

    name: str
    variants: int
    of: int


def overall_rates(
    everything: Sequence[PerturbedPairs],
    harmless: Sequence[str],
    pair_rates: Sequence[str],
    base: PerturbedPairs,
) -> OverallRates:
    """Summarise; ``harmless`` names family A, ``pair_rates`` family B, ``base`` are the runs as
    they were."""
    identity = next((one for one in everything if one.name == IDENTITY), None)
    noise = NO_RATE
    if identity is not None and identity.is_drawn_again:
        flips = flips_of(identity)
        noise = rate(flips == 1, ~np.isnan(flips), identity.cluster)
    same = [one for one in everything if one.name in harmless]
    return OverallRates(
        noise,
        _consistency(same),
        len(same),
        _pair_accuracy([one for one in everything if one.name in pair_rates]),
        rate(base.truth == 1, _judged_success(base), base.cluster, base.benchmark),
        rate(base.clean == 1, base.truth == 1, base.cluster, base.benchmark),
        _excess_flips([one for one in same if one is not identity], identity),
        _coverage_lost(everything),
    )


def _judged_success(base: PerturbedPairs) -> NDArray[np.bool_]:
    return np.asarray((base.clean == 1) & ~np.isnan(base.truth))


def _excess_flips(
    harmless: Sequence[PerturbedPairs], identity: PerturbedPairs | None
) -> RateDifference:
    if identity is None or not identity.is_drawn_again or not harmless:
        return NO_DIFFERENCE
    noise = flips_of(identity)
    columns = [
        (flips_of(one), on_the_same_runs(one, identity, noise), one.cluster) for one in harmless
    ]
    first, second, cluster = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return rate_difference(first, second, cluster)


def _coverage_lost(everything: Sequence[PerturbedPairs]) -> RobustnessRate:
    columns = [(one.clean, one.perturbed, one.cluster) for one in everything]
    if not columns:
        return NO_RATE
    clean, perturbed, cluster = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    had = ~np.isnan(clean)
    return rate(had & np.isnan(perturbed), had, cluster)


def _consistency(everything: Sequence[PerturbedPairs]) -> RobustnessRate:
    """Measure on runs of which at least two verdicts are there beside the clean one."""
    flips: dict[TrajectoryKey, list[float]] = defaultdict(list)
    tasks: dict[TrajectoryKey, int] = {}
    for one in everything:
        known = ~np.isnan(found := flips_of(one))
        for place in np.flatnonzero(known):
            flips[one.sources[place]].append(found[place])
            tasks[one.sources[place]] = int(one.cluster[place])
    kept = [key for key, found in flips.items() if len(found) > 1]
    if not kept:
        return NO_RATE
    steady = np.array([not any(flips[key]) for key in kept])
    return rate(steady, np.ones(len(kept), bool), np.array([tasks[key] for key in kept]))


def _pair_accuracy(everything: Sequence[PerturbedPairs]) -> RobustnessRate:
    columns = []
    for one in everything:
        if one.relation not in (Relation.FALSE, Relation.TRUE):
            continue
        asked = ~np.isnan(one.clean) & ~np.isnan(one.perturbed) & ~np.isnan(one.truth)
        after = float(one.relation is Relation.TRUE)
        columns.append((asked, (one.clean == one.truth) & (one.perturbed == after), one.cluster))
    if not columns:
        return NO_RATE
    asked, right, cluster = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return rate(right & asked, asked, cluster)


def undetectable(everything: Sequence[PerturbedPairs]) -> tuple[Undetectable, ...]:
    """List the perturbations under which failures have the prompts of a success, by the requests
    that the judge sent: those of sources, and of changes that make a run succeed."""
    successes = set()
    for one in everything:
        if one.details is None:
            continue
        became = one.relation is Relation.TRUE
        for place, truth in enumerate(one.truth):
            if truth == 1:
                successes.add(one.details.clean[place].requests)
            if became or (truth == 1 and one.relation is Relation.KEEP):
                successes.add(one.details.perturbed[place].requests)
    successes.discard(frozenset())
    return tuple(
        Undetectable(one.name, found, of)
        for one in everything
        if one.details is not None
        for found, of in [_like(one, successes)]
        if found
    )


def _like(pairs: PerturbedPairs, successes: set[frozenset[str]]) -> tuple[int, int]:
    """Count the failures among the variants, and those that look like a success."""
    if pairs.details is None or pairs.relation is Relation.TRUE:
        return 0, 0
    fails = (pairs.truth == 0) | (pairs.relation is Relation.FALSE)
    places = np.flatnonzero(fails)
    return sum(pairs.details.perturbed[p].requests in successes for p in places), len(places)
