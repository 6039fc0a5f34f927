"""Every candidate measured and tested: overall, and on each benchmark."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trajudge.eval.select.decision import Rate
from trajudge.eval.select.measures.correction import fixed_sequence, least_trials, max_t_level
from trajudge.eval.select.measures.evidence import Evidence, bound, targeted
from trajudge.eval.select.measures.rates import (
    RateSums,
    lower_limits,
    p_values,
    rate_sums,
    upper_limits,
)
from trajudge.eval.select.plan import Plan
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.eval.stats.intervals.cluster_bootstrap import Clusters


@dataclass(frozen=True, eq=False)
class Limited:
    """Rates with their p-values and one-sided limits at ``level``, each (L,)."""

    sums: RateSums
    p: Floats
    low: Floats
    high: Floats
    level: float

    def rate(self, candidate: int) -> Rate:
        """That of one candidate."""
        return Rate(
            hits=int(self.sums.hits[candidate]),
            trials=int(self.sums.trials[candidate]),
            estimate=known(self.sums.estimate[candidate]),
            low=known(self.low[candidate]),
            high=known(self.high[candidate]),
            level=self.level,
        )


@dataclass(frozen=True, eq=False)
class Measured:
    """``target`` is the rate under test, ``places`` the same by benchmark; ``labelled`` (L,)
    counts what a candidate judged there. ``overall`` and ``everywhere`` are who passes, after
    correction; ``testable`` who could have, whatever the labels say."""

    target: Limited
    precision: Limited
    recall: Limited
    places: dict[str, Limited]
    labelled: dict[str, Ints]
    overall: Bools
    everywhere: Bools
    testable: Bools


def measure(plan: Plan, evidence: Evidence, rng: np.random.Generator) -> Measured:
    """All candidates of the plan; ``rng`` is used by max-T alone."""
    alpha, limit = 1 - plan.confidence, bound(plan.target)
    clusters = evidence.clusters(*targeted(evidence, plan.target))
    sums = rate_sums(clusters)
    level, level_there = _levels(plan, clusters, sums, rng)
    target = _limited(sums, limit, level)
    places, labelled = _places(plan, evidence, level_there)
    testable = sums.trials >= least_trials(limit, level)
    if plan.correction == "max-t":
        overall = target.p <= level
    else:
        overall = fixed_sequence(target.p, plan.groups, testable, alpha)
    success = evidence.success[:, None]
    kept = evidence.accepted & success
    recall = rate_sums(evidence.clusters(kept, evidence.judged & success))
    purity = target
    if plan.target.kind != "precision":
        found = rate_sums(evidence.clusters(kept, evidence.accepted))
        purity = _limited(found, limit, alpha)
    return Measured(
        target=target,
        precision=purity,
        recall=_limited(recall, limit, alpha),
        places=places,
        labelled=labelled,
        overall=overall,
        everywhere=_everywhere(plan, places, labelled, level_there),
        testable=testable,
    )


def _levels(
    plan: Plan, clusters: Clusters, sums: RateSums, rng: np.random.Generator
) -> tuple[float, float]:
    """At which each candidate is tested: overall, and on every benchmark."""
    alpha = 1 - plan.confidence
    if plan.correction == "fixed-sequence":
        return alpha / len(plan.families), alpha / len(plan.families)
    # One bootstrap answers for the overall rate alone; the benchmarks take Bonferroni's level.
    return max_t_level(clusters, sums, bound(plan.target), alpha, rng), alpha / sums.hits.size


def _places(
    plan: Plan, evidence: Evidence, level: float
) -> tuple[dict[str, Limited], dict[str, Ints]]:
    places: dict[str, Limited] = {}
    labelled: dict[str, Ints] = {}
    for name in evidence.benchmarks:
        part = evidence.within(evidence.benchmark == name)
        sums = rate_sums(part.clusters(*targeted(part, plan.target)))
        places[name] = _limited(sums, bound(plan.target), level)
        labelled[name] = part.judged.sum(axis=0)
    return places, labelled


def _everywhere(
    plan: Plan, places: dict[str, Limited], labelled: dict[str, Ints], level: float
) -> Bools:
    """Who passes on every benchmark that it judged: the largest p-value decides, and needs no
    correction for the number of benchmarks (intersection-union, Berger 1982)."""
    width = len(plan.candidates)
    worst, fewest = np.zeros(width), np.full(width, np.inf)
    for name, place in places.items():
        here = labelled[name] > 0
        worst = np.where(here, np.maximum(worst, place.p), worst)
        fewest = np.where(here, np.minimum(fewest, place.sums.trials), fewest)
    able = np.isfinite(fewest) & (fewest >= least_trials(bound(plan.target), level))
    if plan.correction == "max-t":
        return np.asarray(able & (worst <= level))
    return fixed_sequence(worst, plan.groups, able, 1 - plan.confidence)


def _limited(sums: RateSums, limit: float, level: float) -> Limited:
    low, high = lower_limits(sums, level), upper_limits(sums, level)
    return Limited(sums, p_values(sums, limit), low, high, level)


def known(value: float) -> float | None:
    """None for ``nan``."""
    return None if math.isnan(value) else float(value)
