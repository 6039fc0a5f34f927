"""What faults do to agents: the estimates of an experiment, with tasks as clusters.

Rates have Wilson's interval with the design effect of tasks, as the rest of the product has;
retention, a ratio of two rates of the same tasks, has Fieller's; mean differences have Student's
over tasks. What every task shows alike has no spread of its own: a rate's change then has limits
from that no change was seen in so many tasks, a mean none. McNemar's exact test swaps the arms in
whole tasks, because runs of one task are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trajudge.eval.resilience.records import (
    LATENCY_PARTS,
    ExperimentArm,
    FaultExperiment,
    FaultPair,
)
from trajudge.eval.stats.interval import Floats, Interval, t_quantile
from trajudge.eval.stats.intervals.binomial import wilson_limits
from trajudge.eval.stats.intervals.cluster_bootstrap import sum_clusters
from trajudge.eval.stats.intervals.clustered_differences import difference_limits
from trajudge.eval.stats.intervals.clustered_rates import rates_by_cluster
from trajudge.eval.stats.intervals.clustered_ratio import ratio_limits
from trajudge.eval.stats.judging.comparison import TaskRuns, mcnemar_by_task

CONFIDENCE = 0.95
_NO_WIDTH = 1e-12  # rounding


class IntervalEstimate(NamedTuple):
    """An estimate with both ends of its interval; None where undefined."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


def estimate_of(interval: Interval) -> IntervalEstimate:
    """Return the only value of an interval as plain numbers."""
    parts = (interval.estimate, interval.low, interval.high)
    return IntervalEstimate(*(None if np.isnan(p.flat[0]) else float(p.flat[0]) for p in parts))


UNDEFINED = IntervalEstimate()


@dataclass(frozen=True)
class ArmMeasures:
    """What the faults of an arm did to an agent, or to all (``agent`` "").

    ``planned`` and ``fired`` count page loads, ``exposed`` pairs in which a fault fired;
    ``recovery`` is the share of fired faults that the run got past, ``kept`` the share of successes
    kept among exposed pairs whose clean run succeeded. ``extra`` are means over exposed pairs in
    which both runs succeeded: what recovering cost.
    """

    agent: str
    arm: str
    kind: str
    pairs: int
    tasks: int
    clean: IntervalEstimate
    faulted: IntervalEstimate
    difference: IntervalEstimate
    retention: IntervalEstimate
    planned: int
    fired: int
    exposed: int
    recovery: IntervalEstimate
    kept: IntervalEstimate
    lost: int
    won: int
    p_value: float
    extra: dict[str, IntervalEstimate]
    recovered_pairs: int


def measures(experiment: FaultExperiment) -> list[ArmMeasures]:
    """Measure every faulted arm: for all agents together, then agent by agent."""
    agents = experiment.agents
    rows = []
    for arm in experiment.faulted:
        for agent in [None, *agents] if len(agents) > 1 else agents:
            pairs = experiment.pairs(arm, agent)
            if pairs:
                rows.append(arm_measures(arm, agent or "", pairs))
    return rows


def arm_measures(arm: ExperimentArm, agent: str, pairs: Sequence[FaultPair]) -> ArmMeasures:
    """Measure one arm on its pairs, at least one."""
    tasks = [pair.faulted.key.task for pair in pairs]
    clean = np.array([bool(pair.clean.success) for pair in pairs])
    faulted = np.array([bool(pair.faulted.success) for pair in pairs])
    exposed = np.array([pair.faulted.fired > 0 for pair in pairs])
    fired = [pair.faulted.fired for pair in pairs]
    past = [sum(met.recovered for met in pair.faulted.faults) for pair in pairs]
    both = [pair for pair in pairs if pair.faulted.fired and _both_succeed(pair)]
    return ArmMeasures(
        agent=agent,
        arm=arm.name,
        kind="; ".join(dict.fromkeys(fault.described for fault in arm.faults)),
        pairs=len(pairs),
        tasks=len(set(tasks)),
        clean=rate(clean, tasks),
        faulted=rate(faulted, tasks),
        difference=difference(faulted, clean, tasks),
        retention=retention(clean, faulted, tasks),
        planned=sum(met.planned for pair in pairs for met in pair.faulted.faults),
        fired=sum(fired),
        exposed=int(exposed.sum()),
        recovery=rate(past, tasks, fired),
        kept=rate(faulted & clean & exposed, tasks, clean & exposed),
        lost=int((clean & ~faulted).sum()),
        won=int((faulted & ~clean).sum()),
        p_value=mcnemar_by_task(clean, faulted, TaskRuns.of(tasks)),
        extra=extras(both),
        recovered_pairs=len(both),
    )


def _both_succeed(pair: FaultPair) -> bool:
    return bool(pair.clean.success and pair.faulted.success)


def rate(
    hits: Sequence[float] | Floats | np.ndarray, tasks: Sequence[str], trials: object = 1.0
) -> IntervalEstimate:
    """Estimate a rate whose trials come in tasks; Wilson's interval with their design effect. With
    all trials in one task the rate has no interval, without a trial nothing is defined."""
    numbers = np.asarray(hits, dtype=float)
    weights = np.broadcast_to(np.asarray(trials, dtype=float), numbers.shape)
    if not weights.sum():
        return UNDEFINED
    return estimate_of(rates_by_cluster(numbers, weights, tasks, confidence=CONFIDENCE).interval)


def difference(first: np.ndarray, second: np.ndarray, tasks: Sequence[str]) -> IntervalEstimate:
    """Estimate the first rate minus the second on the same tasks."""
    ones = np.ones(len(tasks))
    clusters = sum_clusters(np.stack([first, second, ones], axis=1), tasks)
    if len(clusters.sums) < 2:
        return IntervalEstimate(float(first.mean() - second.mean()))
    hits, trials = clusters.sums[:, :2].T, np.stack([clusters.sums[:, 2]] * 2)
    found = estimate_of(difference_limits(hits, trials, clusters.stratum_sizes, CONFIDENCE))
    return with_width(found, hits, trials)


def with_width(difference: IntervalEstimate, hits: Floats, trials: Floats) -> IntervalEstimate:
    """Return a difference of two rates; one that all tasks show alike, which says nothing of how
    they vary, has at least the limits of a share of changes of which none was seen."""
    value, low, high = difference
    if value is None or low is None or high is None or not all_alike(hits, trials):
        return difference
    change = _unseen(int(trials.any(axis=0).sum()))
    low, high = min(low, value - change), max(high, value + change)
    return IntervalEstimate(value, max(low, -1.0), min(high, 1.0))


def all_alike(hits: Floats, trials: Floats) -> bool:
    """Tell whether two rates (2, C) differ by the same in each of C tasks."""
    both = trials.all(axis=0)
    if not both.any() or (trials.any(axis=0) != both).any():
        return False
    apart = np.subtract(*(hits[:, both] / trials[:, both]))
    return bool(np.ptp(apart) <= _NO_WIDTH)


def _unseen(tasks: int) -> float:
    """Compute Wilson's upper limit of a share that none of so many tasks shows, with Student's
    quantile."""
    quantile = t_quantile(CONFIDENCE, tasks - 1)
    return float(wilson_limits(np.array(0.0), np.array(float(tasks)), quantile)[1])


def retention(clean: np.ndarray, faulted: np.ndarray, tasks: Sequence[str]) -> IntervalEstimate:
    """Estimate the success rate with faults over that without; without limits where so few tasks
    succeed that the rate without may be next to none, so that no retention is excluded.

    Where no task differs from another, so that a ratio has no spread of its own, the limits are
    those of a share of pairs that changed of which none was seen.
    """
    if not clean.any():
        return UNDEFINED
    clusters = sum_clusters(np.stack([faulted, clean], axis=1).astype(float), tasks)
    ratio = float(faulted.sum() / clean.sum())
    if len(clusters.sums) < 2:
        return IntervalEstimate(ratio, None, None)
    if np.abs(clusters.sums @ [1.0, -ratio]).max() <= _NO_WIDTH * len(clean):
        return _still(ratio, clean, tasks)
    quantile = float(t_quantile(CONFIDENCE, len(clusters.sums) - 1))
    low, high = ratio_limits(clusters, lambda s: s[..., 0], lambda s: s[..., 1], quantile)
    if np.isnan(low):
        return IntervalEstimate(ratio, None, None)
    return IntervalEstimate(ratio, max(float(low), 0.0), float(high))


def _still(ratio: float, clean: np.ndarray, tasks: Sequence[str]) -> IntervalEstimate:
    """Return the limits of a retention that every task shows alike."""
    change = _unseen(len(set(tasks))) / float(clean.mean())
    return IntervalEstimate(ratio, max(ratio - change, 0.0), ratio + change)


Figure = Callable[[FaultPair], tuple[float | None, float | None]]
FIGURES: dict[str, Figure] = {
    "steps": lambda pair: (pair.faulted.steps, pair.clean.steps),
    "page_loads": lambda pair: (pair.faulted.page_loads, pair.clean.page_loads),
    "model_calls": lambda pair: (pair.faulted.model_calls, pair.clean.model_calls),
    "tokens": lambda pair: (pair.faulted.tokens, pair.clean.tokens),
    "dollars": lambda pair: (pair.faulted.dollars, pair.clean.dollars),
    "seconds": lambda pair: (pair.faulted.seconds, pair.clean.seconds),
}


def _part(name: str) -> Figure:
    return lambda pair: (pair.faulted.latency.get(name), pair.clean.latency.get(name))


FIGURES |= {f"{name}_seconds": _part(name) for name in LATENCY_PARTS}


def extras(pairs: Sequence[FaultPair]) -> dict[str, IntervalEstimate]:
    """Estimate the mean of faulted minus clean for every figure; pairs in which it is not known on
    both sides are left out."""
    return {name: _extra(pairs, of) for name, of in FIGURES.items()}


def _extra(pairs: Sequence[FaultPair], of: Figure) -> IntervalEstimate:
    values, tasks = [], []
    for pair in pairs:
        more, less = of(pair)
        if more is not None and less is not None:
            values.append(more - less)
            tasks.append(pair.faulted.key.task)
    return mean(values, tasks)


def mean(values: Sequence[float], tasks: Sequence[str]) -> IntervalEstimate:
    """Estimate a mean over runs, with Student's interval over tasks; with none where no task
    differs from another, since how far the next one may is not known."""
    if not values:
        return UNDEFINED
    pooled = float(np.mean(values))
    table = np.stack([np.asarray(values, dtype=float) - pooled, np.ones(len(values))], axis=1)
    sums = sum_clusters(table, tasks).sums
    count = len(sums)
    if count < 2:
        return IntervalEstimate(pooled, None, None)
    error = np.sqrt(count / (count - 1) * np.square(sums[:, 0]).sum()) / len(values)
    half = float(t_quantile(CONFIDENCE, count - 1) * error)
    if half <= _NO_WIDTH * max(1.0, abs(pooled)):
        return IntervalEstimate(pooled, None, None)
    return IntervalEstimate(pooled, pooled - half, pooled + half)
