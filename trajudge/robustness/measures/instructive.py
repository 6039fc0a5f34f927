"""The cases that show best what moves a judge: one for each of the changes that do most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.robustness.measures.differences import on_the_same_runs
from trajudge.robustness.measures.pairs import IDENTITY, PairDetails, PerturbedPairs
from trajudge.robustness.model import Relation
from trajudge.trajectories.model import TrajectoryKey

CaseKind = Literal["fooled", "not followed", "unstable"]
CASES = 10
# Of each kind, where there are as many; attacks fill what the others leave.
_SHARES: Mapping[CaseKind, int] = {"fooled": 6, "not followed": 2, "unstable": 2}


class InstructiveCase(NamedTuple):
    """A run of which the judge said ``clean`` and, under the perturbation, ``perturbed``, with the
    scores and reasons that it gave. ``fooled``: it accepts a failure now. ``not followed``: the
    truth changed, its right verdict did not. ``unstable``: a harmless change moved it. ``truth`` is
    the source's."""

    kind: CaseKind
    perturbation: str
    source: TrajectoryKey
    truth: bool | None
    clean: bool
    perturbed: bool
    clean_score: float | None
    perturbed_score: float | None
    clean_reasoning: str
    perturbed_reasoning: str


class _Place(NamedTuple):
    """One pair of a perturbation, and how it is ranked: the least first."""

    rank: tuple[object, ...]
    kind: CaseKind
    pairs: PerturbedPairs
    details: PairDetails
    at: int


def instructive_cases(
    everything: Sequence[PerturbedPairs],
    attacks: Mapping[str, str | None],
    harmless: Collection[str],
) -> tuple[InstructiveCase, ...]:
    """Choose at most ``CASES``. ``attacks`` names the benign twin of each, ``harmless`` the
    perturbations of family A.

    Of each perturbation one run, of a task that was not shown before where there is one: first the
    perturbations that move most runs, and of their runs those that the twin does not move and whose
    score changes most.
    """
    by_name = {one.name: one for one in everything}
    ranked: dict[CaseKind, list[list[_Place]]] = {kind: [] for kind in _SHARES}
    for one in everything:
        kind: CaseKind = "not followed"
        if one.name in attacks:
            kind = "fooled"
        elif one.name in harmless and one.name != IDENTITY:
            kind = "unstable"
        elif one.relation not in (Relation.FALSE, Relation.TRUE):
            continue
        if places := _places(one, kind, by_name.get(attacks.get(one.name) or "")):
            ranked[kind].append(places)
    for found in ranked.values():
        found.sort(key=lambda places: (-_share(places), places[0].pairs.name))
    return tuple(_case(place) for place in _chosen(ranked))


def _chosen(ranked: Mapping[CaseKind, list[list[_Place]]]) -> list[_Place]:
    first = [places for kind, most in _SHARES.items() for places in ranked[kind][:most]]
    rest = [places for kind, most in _SHARES.items() for places in ranked[kind][most:]]
    shown: set[tuple[str, str]] = set()
    chosen = []
    for places in [*first, *rest][:CASES]:
        place = min(places, key=lambda one: (_task(one) in shown, one.rank))
        shown.add(_task(place))
        chosen.append(place)
    return sorted(chosen, key=lambda one: list(_SHARES).index(one.kind))


def _places(pairs: PerturbedPairs, kind: CaseKind, twin: PerturbedPairs | None) -> list[_Place]:
    """List the pairs of one perturbation that show what their kind says, the best first."""
    details = pairs.details
    if details is None:
        return []
    benign = on_the_same_runs(pairs, twin, twin.perturbed if twin else np.empty(0))
    change = np.nan_to_num(np.abs(details.after - details.before))
    made = [
        _Place((benign[at] == 1, -change[at], source.order), kind, pairs, details, int(at))
        for at in np.flatnonzero(_moved(pairs, kind))
        for source in [pairs.sources[at]]
    ]
    return sorted(made, key=lambda one: one.rank)


def _moved(pairs: PerturbedPairs, kind: CaseKind) -> NDArray[np.bool_]:
    both = ~np.isnan(pairs.clean) & ~np.isnan(pairs.perturbed)
    flipped = both & (pairs.clean != pairs.perturbed)
    after = float(pairs.relation is Relation.TRUE)
    found = {
        "fooled": flipped & (pairs.truth == 0) & (pairs.perturbed == 1),
        "unstable": flipped,
        "not followed": both & ~flipped & (pairs.truth == pairs.clean) & (pairs.truth == 1 - after),
    }
    return np.asarray(found[kind])


def _share(places: Sequence[_Place]) -> float:
    return len(places) / len(places[0].pairs.clean)


def _task(place: _Place) -> tuple[str, str]:
    source = place.pairs.sources[place.at]
    return source.benchmark, source.task_id


def _case(place: _Place) -> InstructiveCase:
    pairs, at = place.pairs, place.at
    before, after = place.details.clean[at], place.details.perturbed[at]
    truth = pairs.truth[at]
    return InstructiveCase(
        place.kind,
        pairs.name,
        pairs.sources[at],
        None if np.isnan(truth) else bool(truth),
        bool(pairs.clean[at]),
        bool(pairs.perturbed[at]),
        before.score,
        after.score,
        before.reasoning,
        after.reasoning,
    )
