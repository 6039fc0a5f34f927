"""Every candidate measured and tested: overall, and on each benchmark."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from trajudge.eval.select.decision import CandidateRate
from trajudge.eval.select.measures.correction import fixed_sequence, max_t_level, min_trials
from trajudge.eval.select.measures.rates import (
    RateSums,
    TaskSums,
    lower_limits,
    p_values,
    rate_sums,
    upper_limits,
)
from trajudge.eval.select.measures.selection_data import (
    SelectionData,
    hits_and_trials,
    required_rate,
)
from trajudge.eval.select.plan import SelectionPlan
from trajudge.stats.intervals import Bools, Clusters, Floats, Ints, clustered_rates

DOMINANT = 0.5
"""The largest share of what a candidate accepts that may be of one task."""


@dataclass(frozen=True, eq=False)
class RateTest:
    """Rates with their p-values and one-sided limits at ``level``, each (L,).

    Limits of a rate under test are the rates that the test does not reject: they never contradict
    its verdict.
    """

    sums: RateSums
    p: Floats
    low: Floats
    high: Floats
    level: float

    def rate(self, candidate: int) -> CandidateRate:
        """Select one candidate's measure."""
        return CandidateRate(
            hits=int(self.sums.counted[0, candidate]),
            trials=int(self.sums.counted[1, candidate]),
            estimate=known(self.sums.estimate[candidate]),
            low=known(self.low[candidate]),
            high=known(self.high[candidate]),
            level=self.level,
        )


@dataclass(frozen=True, eq=False)
class CandidateTests:
    """``target`` is the rate under test, ``places`` the same by benchmark; ``labelled`` (L,)
    counts what a candidate judged there. ``overall`` and ``everywhere`` are who passes, after
    correction; ``testable`` who could have, whatever the labels say."""

    target: RateTest
    precision: RateTest
    recall: RateTest
    places: dict[str, RateTest]
    labelled: dict[str, Ints]
    overall: Bools
    everywhere: Bools
    testable: Bools


def measure(
    plan: SelectionPlan, evidence: SelectionData, rng: np.random.Generator
) -> CandidateTests:
    """Measure and test all candidates of the plan; ``rng`` is used by max-T alone."""
    alpha, limit = 1 - plan.confidence, required_rate(plan.target)
    clusters = evidence.clusters(*hits_and_trials(evidence, plan.target))
    sums = rate_sums(clusters)
    level, level_there = _levels(plan, clusters, sums, rng)
    target = _limited(sums, limit, level)
    places, labelled = _places(plan, evidence, level_there)
    least = min_trials(limit, level)
    testable = np.where(sums.one_each, sums.tasks, sums.counted[1]) >= least
    # One task that holds most of what is accepted shows little of others.
    largest = [evidence.largest_task(i)[1] for i in range(len(plan.candidates))]
    testable &= np.array(largest) <= DOMINANT
    target = replace(target, p=np.where(np.array(largest) <= DOMINANT, target.p, 1.0))
    if plan.correction == "max-t":
        overall = target.p <= level
    else:
        overall = fixed_sequence(target.p, plan.groups, testable, alpha)
    success = evidence.success[:, None]
    kept = evidence.accepted & success
    precision = target
    if plan.target.kind != "precision":
        precision = _untested(evidence.clusters(kept, evidence.accepted), alpha)
    return CandidateTests(
        target=target,
        precision=precision,
        recall=_untested(evidence.clusters(kept, evidence.judged & success), alpha),
        places=places,
        labelled=labelled,
        overall=overall,
        everywhere=_everywhere(plan, places, labelled, level_there),
        testable=testable,
    )


def _levels(
    plan: SelectionPlan, clusters: Clusters, sums: RateSums, rng: np.random.Generator
) -> tuple[float, float]:
    """Find the levels at which each candidate is tested: overall, and on every benchmark."""
    alpha = 1 - plan.confidence
    if plan.correction == "fixed-sequence":
        return alpha / len(plan.families), alpha / len(plan.families)
    # One bootstrap answers for the overall rate alone; the benchmarks take Bonferroni's level.
    return max_t_level(
        clusters, sums, required_rate(plan.target), alpha, rng
    ), alpha / sums.hits.size


def _places(
    plan: SelectionPlan, evidence: SelectionData, level: float
) -> tuple[dict[str, RateTest], dict[str, Ints]]:
    places: dict[str, RateTest] = {}
    labelled: dict[str, Ints] = {}
    for name in evidence.benchmarks:
        part = evidence.within(evidence.benchmark == name)
        sums = rate_sums(part.clusters(*hits_and_trials(part, plan.target)))
        places[name] = _limited(sums, required_rate(plan.target), level)
        labelled[name] = part.judged.sum(axis=0)
    return places, labelled


def _everywhere(
    plan: SelectionPlan, places: dict[str, RateTest], labelled: dict[str, Ints], level: float
) -> Bools:
    """Find who passes on every benchmark that it judged: the largest p-value decides, and needs no
    correction for the number of benchmarks (intersection-union, Berger 1982)."""
    width = len(plan.candidates)
    worst, fewest = np.zeros(width), np.full(width, np.inf)
    for name, place in places.items():
        here = labelled[name] > 0
        worst = np.where(here, np.maximum(worst, place.p), worst)
        trials = np.where(place.sums.one_each, place.sums.tasks, place.sums.counted[1])
        fewest = np.where(here, np.minimum(fewest, trials), fewest)
    able = np.isfinite(fewest) & (fewest >= min_trials(required_rate(plan.target), level))
    if plan.correction == "max-t":
        return np.asarray(able & (worst <= level))
    return fixed_sequence(worst, plan.groups, able, 1 - plan.confidence)


def _limited(sums: RateSums, limit: float, level: float) -> RateTest:
    low, high = lower_limits(sums, level), upper_limits(sums, level)
    return RateTest(sums, p_values(sums, limit), low, high, level)


def _untested(clusters: TaskSums, level: float) -> RateTest:
    """Compute rates that no target bounds, with one-sided limits of the intervals that every other
    table has (``clustered_rates``); no p-values."""
    hits, trials = np.split(clusters.sums.T, 2)
    squares = None if clusters.squares is None else clusters.squares.T
    rates = clustered_rates(hits, trials, clusters.stratum_sizes, 1 - 2 * level, squares)
    interval = rates.interval
    nothing = np.full(len(hits), np.nan)
    return RateTest(rate_sums(clusters), nothing, interval.low, interval.high, level)


def known(value: float) -> float | None:
    """Replace ``nan`` by None."""
    return None if math.isnan(value) else float(value)
