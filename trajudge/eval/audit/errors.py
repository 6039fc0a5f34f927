"""The errors of a rule against the experts, by what the tasks have in common.

A false negative is a success that the rule denies (it withholds reward for good work), a false
positive a failure that it passes (AgentRewardBench section 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.eval.audit.facets import TaskFacets, group_by
from trajudge.eval.stats.intervals.clustered_rates import rates_by_cluster
from trajudge.trajectories.model import Record, TrajectoryKey

Verdicts = Mapping[TrajectoryKey, bool]
Weights = Mapping[TrajectoryKey, float] | None
"""One over the probability with which each label was drawn; None: all alike."""


class ClusteredRate(Record):
    """``hits`` of ``trials`` with 95 % limits that are cluster-robust over tasks: None where there
    are not two tasks, as ``rate`` is without a trial. ``design_effect``: how many times larger the
    variance is than that of independent trajectories."""

    hits: int
    trials: int
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    design_effect: float | None = None


class RuleErrors(Record):
    """One group of trajectories. ``precision``: of those that the rule passes, the share that the
    expert calls successful; ``missed``: of the successes, the share that the rule denies;
    ``passed_failures``: of the failures, the share that it passes."""

    facet: str
    value: str
    n: int
    precision: ClusteredRate
    missed: ClusteredRate
    passed_failures: ClusteredRate


def rate(
    keys: Sequence[TrajectoryKey],
    hits: Verdicts,
    counted: Verdicts | None = None,
    weights: Weights = None,
) -> ClusteredRate:
    """Compute the share of ``keys`` whose value in ``hits`` is true, with its interval.

    With ``counted`` it is the share among those with a true value there; the tasks of the others
    are tasks that were drawn as well, therefore the interval is that of ``trajudge score``.
    """
    trials = np.array([counted is None or counted[key] for key in keys], dtype=float)
    if not trials.any():
        return ClusteredRate(hits=0, trials=0)
    values = np.array([hits[key] for key in keys], dtype=float) * trials
    rates = rates_by_cluster(
        values,
        trials,
        [family_of(key) for key in keys],
        [benchmark_of(key) for key in keys],
        weights=None if weights is None else np.array([weights[key] for key in keys]),
    )
    limits = rates.interval
    estimate, low, high, effect = (
        float(part[0]) for part in (limits.estimate, limits.low, limits.high, rates.design_effect)
    )
    known = not np.isnan(low)
    return ClusteredRate(
        hits=int(values.sum()),
        trials=int(trials.sum()),
        rate=estimate,
        low=low if known else None,
        high=high if known else None,
        design_effect=effect if known else None,
    )


def rule_errors(
    rule: Verdicts,
    expert: Verdicts,
    keys: Sequence[TrajectoryKey],
    *,
    facet: str,
    value: str,
    weights: Weights = None,
) -> RuleErrors:
    """Compare the rule with the expert on ``keys``, all of which have both verdicts."""
    denied = {key: not rule[key] for key in keys}
    failed = {key: not expert[key] for key in keys}
    return RuleErrors(
        facet=facet,
        value=value,
        n=len(keys),
        precision=rate(keys, expert, rule, weights),
        missed=rate(keys, denied, expert, weights),
        passed_failures=rate(keys, rule, failed, weights),
    )


def errors_by_facet(
    rule: Verdicts,
    expert: Verdicts,
    keys: Sequence[TrajectoryKey],
    facets: TaskFacets,
    weights: Weights = None,
) -> list[RuleErrors]:
    """Compare them on all trajectories, then on every value of every facet."""
    groups = {("all", "all"): list(keys), **group_by(list(keys), facets)}
    return [
        rule_errors(rule, expert, members, facet=facet, value=value, weights=weights)
        for (facet, value), members in groups.items()
    ]
