"""The errors of a rule against the experts, by what the tasks have in common.

A false negative is a success that the rule denies (it withholds reward for good work), a false
positive a failure that it passes (AgentRewardBench section 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eval.audit.facets import TaskFacets, group_by
from eval.stats.binomial import wilson
from trajectories.model import Record, TrajectoryKey

Verdicts = Mapping[TrajectoryKey, bool]


class Rate(Record):
    """``hits`` of ``trials`` with Wilson's 95 % limits; all None without a trial."""

    hits: int
    trials: int
    rate: float | None = None
    low: float | None = None
    high: float | None = None


class RuleErrors(Record):
    """One group of trajectories. ``precision``: of those that the rule passes, the share that the
    expert calls successful; ``missed``: of the successes, the share that the rule denies;
    ``passed_failures``: of the failures, the share that it passes."""

    facet: str
    value: str
    n: int
    precision: Rate
    missed: Rate
    passed_failures: Rate


def rate(hits: int, trials: int) -> Rate:
    """A proportion with its interval."""
    if trials == 0:
        return Rate(hits=hits, trials=trials)
    limits = wilson(hits, trials)
    return Rate(
        hits=hits,
        trials=trials,
        rate=hits / trials,
        low=float(limits.low),
        high=float(limits.high),
    )


def rule_errors(
    rule: Verdicts, expert: Verdicts, keys: Sequence[TrajectoryKey], *, facet: str, value: str
) -> RuleErrors:
    """The rule against the expert on ``keys``, all of which have both verdicts."""
    passed = [key for key in keys if rule[key]]
    good = [key for key in keys if expert[key]]
    both = sum(expert[key] for key in passed)
    return RuleErrors(
        facet=facet,
        value=value,
        n=len(keys),
        precision=rate(both, len(passed)),
        missed=rate(len(good) - both, len(good)),
        passed_failures=rate(len(passed) - both, len(keys) - len(good)),
    )


def errors_by_facet(
    rule: Verdicts, expert: Verdicts, keys: Sequence[TrajectoryKey], facets: TaskFacets
) -> list[RuleErrors]:
    """All trajectories first, then every value of every facet."""
    groups = {("all", "all"): list(keys), **group_by(list(keys), facets)}
    return [
        rule_errors(rule, expert, members, facet=facet, value=value)
        for (facet, value), members in groups.items()
    ]
