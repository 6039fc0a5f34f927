"""Success rates of agents by expert, judge and rule (AgentRewardBench Table 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.scoring.groups import TrajectoryGroup
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.protocol import success_rate
from trajudge.eval.scoring.records import Limits, Missing, RateName, SuccessRate
from trajudge.eval.stats.interval import Floats
from trajudge.eval.stats.intervals.clustered_rates import rates_by_cluster


class RateCells(NamedTuple):
    """What a row is of: a judge's observations of success in a group."""

    judge: str
    group: TrajectoryGroup
    observations: Observations


def success_rates(cells: Iterable[RateCells], missing: Missing) -> list[SuccessRate]:
    """Compute the three rates of every cell; under the paper's protocol they are rounded to four
    digits, the rate of nothing is 0, and a missing verdict is no success."""
    chosen = [*cells]
    counted = [_counted(cell.observations, missing) for cell in chosen]
    # Expert and reward are the trajectory's, whoever judges it: judges are computed together.
    together: dict[bytes, list[int]] = defaultdict(list)
    for number, each in enumerate(counted):
        together[each.trajectories].append(number)
    intervals: list[dict[RateName, Limits]] = [{} for _ in chosen]
    known: _Known = {}
    for members in together.values():
        judges = [counted[i] for i in members]
        for number, limits in zip(members, _intervals(judges, known), strict=True):
            intervals[number] = limits
    return [
        _success_rate(cell, each, missing, limits)
        for cell, each, limits in zip(chosen, counted, intervals, strict=True)
    ]


_Known = dict[bytes, list[Limits | None]]
"""Limits of rates by the outcomes and tasks that they come from: groups of changed runs that a
judge sees through have those of their sources."""


def _intervals(judges: Sequence[Observations], known: _Known) -> list[dict[RateName, Limits]]:
    """Of every judge of the same trajectories, by the names of the rates; empty without any."""
    observations = judges[0]
    if not len(observations):
        return [{} for _ in judges]
    columns = [observations.labels, *(judge.predictions == 1 for judge in judges)]
    expert, *accepted = _limits(observations, np.column_stack(columns), known)
    rewarded = observations.where(~np.isnan(observations.reward))
    rule = _limits(rewarded, _shares(rewarded), known)[0] if len(rewarded) else None
    intervals: list[dict[RateName, Limits]] = []
    for mine in accepted:
        limits: dict[RateName, Limits | None] = {
            "expert": expert,
            "judge_rate": mine,
            "rule_based": rule,
        }
        intervals.append({name: ends for name, ends in limits.items() if ends is not None})
    return intervals


def _counted(observations: Observations, missing: Missing) -> Observations:
    return observations.where(observations.answered) if missing == "exclude" else observations


def _success_rate(
    cell: RateCells,
    observations: Observations,
    missing: Missing,
    intervals: dict[RateName, Limits],
) -> SuccessRate:
    rewarded = observations.where(~np.isnan(observations.reward))
    return SuccessRate(
        judge=cell.judge,
        benchmark=cell.group.benchmark,
        agent=cell.group.agent,
        n=len(observations),
        rewarded=len(rewarded),
        expert=_mean(observations.labels, observations, missing),
        judge_rate=_mean(observations.predictions == 1, observations, missing),
        rule_based=_mean(_shares(rewarded), rewarded, missing),
        intervals=intervals,
    )


def _shares(rewarded: Observations) -> Floats:
    """Return the rewards as shares of a success, (N,): a log that punishes a failure with -1 has
    no smaller share of successes than none."""
    return np.clip(rewarded.reward, 0.0, 1.0)


def _mean(
    values: np.ndarray[Any, Any], observations: Observations, missing: Missing
) -> float | None:
    if missing == "agentrewardbench":
        return success_rate(values.tolist())
    if len(values) and (weights := observations.weights) is not None:
        return float(np.average(values, weights=weights))
    return float(values.mean()) if len(values) else None


def _limits(observations: Observations, values: NDArray[Any], known: _Known) -> list[Limits | None]:
    """Of the mean of each column of ``values`` (N, L); None where there are not two tasks."""
    task, benchmark, weights = observations.task, observations.benchmark, observations.weights
    digest = sha256(f"{values.dtype} {values.shape}".encode())
    for column in (values, task, benchmark, *([] if weights is None else [weights])):
        digest.update(np.ascontiguousarray(column).data)
    limits = known.get(digest.digest())
    if limits is None:
        rates = rates_by_cluster(values, np.True_, task, benchmark, weights=weights).interval
        limits = known[digest.digest()] = [
            None if np.isnan(low) else (low, high)
            for low, high in zip(rates.low.tolist(), rates.high.tolist(), strict=True)
        ]
    return limits
