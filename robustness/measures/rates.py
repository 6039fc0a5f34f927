"""How often a perturbation changes a verdict, with intervals over tasks.

Of a pair: the clean verdict v, the perturbed one v', the truth y. A judge that gave no verdict
under the perturbation lost coverage; it is in no other rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.stats.intervals.clustered_rates import rates_by_cluster
from trajudge.robustness.measures.pairs import PerturbedPairs
from trajudge.robustness.model import Relation, truth_after

Bools = NDArray[np.bool_]


class RobustnessRate(NamedTuple):
    """A share of ``trials``; estimate and 95 % limits are None without a trial, the limits also
    with all trials in one task."""

    hits: int
    trials: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class PerturbationRates(NamedTuple):
    """What one perturbation does to a judge.

    ``flips``: v' differs from v. ``attack_success``: v' = success where y and v are failure.
    ``twin_success`` is the same of the benign twin on the same runs, ``net_success`` the first
    minus the second, in shares. ``false_positives_added``: the false-positive rate after minus
    before, on the same runs. ``sensitivity``: v' follows the truth where v was right and the
    perturbation changes it. ``coverage_lost``: no verdict under the perturbation, of those that had
    one.
    """

    name: str
    pairs: int
    flips: RobustnessRate
    attack_success: RobustnessRate
    twin_success: RobustnessRate
    net_success: float | None
    false_positives_added: float | None
    sensitivity: RobustnessRate
    coverage_lost: RobustnessRate


def rates_of(
    pairs: PerturbedPairs, by_name: Mapping[str, PerturbedPairs], twin: str | None
) -> PerturbationRates:
    """Measure one perturbation; ``twin`` names the benign one among ``by_name``."""
    had, has = ~np.isnan(pairs.clean), ~np.isnan(pairs.perturbed)
    both = had & has
    flipped = both & (pairs.clean != pairs.perturbed)
    fails = both & (pairs.truth == 0) & (pairs.relation in (Relation.KEEP, Relation.DROPS))
    fooled = fails & (pairs.clean == 0)
    won = fooled & (pairs.perturbed == 1)
    against = _twin(pairs, by_name.get(twin or ""), fooled)
    after = _truth_after(pairs)
    asked = both & ~np.isnan(after) & (pairs.truth == pairs.clean)
    asked &= pairs.relation in (Relation.FALSE, Relation.TRUE)
    return PerturbationRates(
        pairs.name,
        len(pairs.clean),
        _rate(flipped, both, pairs.cluster),
        _rate(won, fooled, pairs.cluster),
        _rate(against == 1, ~np.isnan(against), pairs.cluster),
        _net(won, against),
        _added(pairs, fails),
        _rate(asked & (pairs.perturbed == after), asked, pairs.cluster),
        _rate(had & ~has, had, pairs.cluster),
    )


def _twin(pairs: PerturbedPairs, twin: PerturbedPairs | None, fooled: Bools) -> NDArray[np.float64]:
    """Return the twin's verdict on the runs that could be fooled, NaN elsewhere."""
    told = np.full(len(pairs.clean), np.nan)
    if twin is None:
        return told
    verdict = dict(zip(twin.sources, twin.perturbed.tolist(), strict=True))
    for place in np.flatnonzero(fooled):
        told[place] = verdict.get(pairs.sources[place], np.nan)
    return told


def _net(won: Bools, against: NDArray[np.float64]) -> float | None:
    known = ~np.isnan(against)
    return float((won[known] - against[known]).mean()) if known.any() else None


def _added(pairs: PerturbedPairs, fails: Bools) -> float | None:
    return float((pairs.perturbed[fails] - pairs.clean[fails]).mean()) if fails.any() else None


def _truth_after(pairs: PerturbedPairs) -> NDArray[np.float64]:
    known = [None if np.isnan(truth) else bool(truth) for truth in pairs.truth]
    after = [truth_after(pairs.relation, truth) for truth in known]
    return np.array([np.nan if truth is None else float(truth) for truth in after])


def _rate(hits: Bools, trials: Bools, cluster: NDArray[np.int64]) -> RobustnessRate:
    n = int(trials.sum())
    if not n:
        return RobustnessRate(0, 0)
    made = rates_by_cluster((hits & trials).astype(float), trials.astype(float), cluster).interval
    limits = (float(made.low[0]), float(made.high[0]))
    low, high = (None if np.isnan(limit) else limit for limit in limits)
    return RobustnessRate(int((hits & trials).sum()), n, float(made.estimate[0]), low, high)
