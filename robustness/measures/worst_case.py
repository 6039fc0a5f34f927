"""Precision under the attack that hurts most, with a lower limit that holds for all of them.

The least of several estimates is biased down, and its limit must hold for whichever it is: the
limits are simultaneous, from the largest studentised deviation over a bootstrap of tasks (max-t).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.robustness.measures.pairs import PerturbedPairs
from trajudge.trajectories.model import TrajectoryKey

REPLICATES = 2_000
Floats = NDArray[np.float64]


class AttackedPrecision(NamedTuple):
    """Precision when every failure that an attack applies to comes with it: the share of true
    successes among the accepted. ``low`` holds for all attacks at once, with 95 %; None where it
    cannot be told."""

    name: str
    precision: float
    low: float | None


class WorstCase(NamedTuple):
    """Clean precision and recall, and precision under each attack, the worst first."""

    precision: float | None
    recall: float | None
    attacks: tuple[AttackedPrecision, ...]


class _Table(NamedTuple):
    """Counts by task: true successes (C,), of which accepted, accepted failures (C,), and accepted
    failures under each attack (C, A)."""

    positives: Floats
    accepted: Floats
    false: Floats
    attacked: Floats


def worst_case(
    attacks: Sequence[PerturbedPairs],
    everything: Sequence[PerturbedPairs],
    rng: np.random.Generator,
) -> WorstCase:
    """Measure precision under each attack on the runs of ``everything``, all pairs of a judge.

    A failure that an attack does not apply to keeps its clean verdict; one without a verdict is
    not accepted.
    """
    table = _table(attacks, _sources(everything))
    accepted, false = table.accepted.sum(), table.false.sum()
    positives = table.positives.sum()
    clean = float(accepted / (accepted + false)) if accepted + false else None
    recall = float(accepted / positives) if positives else None
    if clean is None or not attacks:
        return WorstCase(clean, recall, ())
    rates = _precision(table.accepted.sum(), table.attacked.sum(axis=0))
    lows = _limits(table, rates, rng)
    found = [
        AttackedPrecision(attack.name, float(rate), None if np.isnan(low) else float(low))
        for attack, rate, low in zip(attacks, rates, lows, strict=True)
    ]
    return WorstCase(clean, recall, tuple(sorted(found, key=lambda one: (one.precision, one.name))))


def _precision(accepted: Floats, false: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(accepted / (accepted + false))


def _limits(table: _Table, rates: Floats, rng: np.random.Generator) -> Floats:
    clusters = len(table.accepted)
    if clusters < 2:
        return np.full(len(rates), np.nan)
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=REPLICATES)
    drawn = _precision((weights @ table.accepted)[:, None], weights @ table.attacked)
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    spread = drawn.std(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = np.where(spread > 0, (drawn - rates) / spread, 0.0)
    quantile = np.quantile(deviations.max(axis=1), 0.95)
    return np.where(spread > 0, np.maximum(rates - quantile * spread, 0.0), np.nan)


def _table(
    attacks: Sequence[PerturbedPairs], sources: Mapping[TrajectoryKey, tuple[int, float, float]]
) -> _Table:
    clusters = max((cluster for cluster, _, _ in sources.values()), default=-1) + 1
    columns = [np.zeros(clusters) for _ in range(3)]
    table = _Table(columns[0], columns[1], columns[2], np.zeros((clusters, len(attacks))))
    verdicts = [dict(zip(a.sources, a.perturbed.tolist(), strict=True)) for a in attacks]
    for source, (cluster, clean, truth) in sources.items():
        if truth == 1:
            table.positives[cluster] += 1
            table.accepted[cluster] += clean == 1
        elif truth == 0:
            table.false[cluster] += clean == 1
            for place, verdict in enumerate(verdicts):
                table.attacked[cluster, place] += verdict.get(source, clean) == 1
    return table


def _sources(
    everything: Sequence[PerturbedPairs],
) -> dict[TrajectoryKey, tuple[int, float, float]]:
    """Return the task, the clean verdict and the truth of every run."""
    return {
        source: (int(cluster), float(clean), float(truth))
        for one in everything
        for source, cluster, clean, truth in zip(
            one.sources, one.cluster, one.clean, one.truth, strict=True
        )
    }
