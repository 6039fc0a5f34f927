"""Success rates of agents by expert, judge and rule (AgentRewardBench Table 6), and estimates from
a judge over all runs and labels of some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.scoring.observations import (
    Observations,
    Predictions,
    TrajectoryGroup,
    success_rate,
)
from trajudge.eval.scoring.records import (
    OVERALL,
    RULE_BASED,
    EstimatedRate,
    EstimatedRateName,
    Limits,
    Missing,
    RateName,
    SuccessRate,
)
from trajudge.eval.store.table import UNKNOWN
from trajudge.stats.comparison import PoweredRate, gain_over_labels, powered_rate, stratified_rate
from trajudge.stats.intervals import Bools, Floats, Interval, rates_by_cluster


def estimated_rates(
    judge: str, predictions: Predictions, groups: list[TrajectoryGroup], missing: Missing
) -> Iterator[EstimatedRate]:
    """Yield the estimate of every group of which some judged trajectories have an expert label and
    others have no annotation; those whose label is unsure are left out.

    A failed judgment counts as not accepted, and not at all where ``missing`` is "exclude".
    Benchmarks are strata of the whole, by their shares of the trajectories. Labels that were drawn
    with unequal probabilities give none: ``trajudge label estimate`` does.
    """
    if judge == RULE_BASED or predictions.reference.is_weighted:
        return
    reference, index = predictions.reference, predictions.index
    counted = np.ones(len(index), dtype=bool)
    if missing == "exclude":
        counted = predictions.answered("success")
    labelled = counted & (reference.labels["success"][index] != UNKNOWN)
    unlabelled = counted & ~reference.annotated[index]
    if not (labelled.any() and unlabelled.any()):
        return
    for group in groups:
        members = group.members(reference)[index]
        if (members & labelled).any() and (members & unlabelled).any():
            yield _estimate(judge, group, predictions, members & labelled, members & unlabelled)


def _estimate(
    judge: str, group: TrajectoryGroup, predictions: Predictions, labelled: Bools, unlabelled: Bools
) -> EstimatedRate:
    whole = _powered(predictions, labelled, unlabelled)
    estimate, effective, unknown = whole.powered, whole.effective_labels, ""
    if group.benchmark == OVERALL:
        estimate, effective, unknown = _over_benchmarks(predictions, labelled, unlabelled)
    intervals: dict[EstimatedRateName, Interval] = {
        "estimate": estimate,
        "expert_only": whole.expert_only,
        "judge_only": whole.judge_only,
    }
    limits: dict[EstimatedRateName, Limits] = {
        name: (float(i.low[0]), float(i.high[0]))
        for name, i in intervals.items()
        if not np.isnan(i.low[0])
    }
    return EstimatedRate(
        judge=judge,
        benchmark=group.benchmark,
        agent=group.agent,
        labelled=int(labelled.sum()),
        unlabelled=int(unlabelled.sum()),
        labelled_tasks=whole.tasks,
        estimate=float(estimate.estimate[0]) if "estimate" in limits else None,
        expert_only=float(whole.expert_only.estimate[0]),
        judge_only=float(whole.judge_only.estimate[0]),
        effective_labels=None if np.isnan(effective) else effective,
        intervals=limits,
        note=unknown + "; ".join(estimate.notes),
    )


def _powered(predictions: Predictions, labelled: Bools, unlabelled: Bools) -> PoweredRate:
    reference, index = predictions.reference, predictions.index
    accepted = (predictions.values["success"] == 1).astype(float)
    return powered_rate(
        reference.labels["success"][index[labelled]],
        accepted[labelled],
        accepted[unlabelled],
        labelled_tasks=reference.task[index[labelled]],
        unlabelled_tasks=reference.task[index[unlabelled]],
    )


def _over_benchmarks(
    predictions: Predictions, labelled: Bools, unlabelled: Bools
) -> tuple[Interval, float, str]:
    """Stratify by benchmark, since judges err differently on each: the estimate, how many labels
    alone would be as precise, spread over the benchmarks as these are, and where none is known."""
    benchmark = predictions.reference.benchmark[predictions.index]
    codes, sizes = np.unique(benchmark[labelled | unlabelled], return_counts=True)
    strata = [
        _powered(predictions, labelled & (benchmark == code), unlabelled & (benchmark == code))
        for code in codes
    ]
    shares = sizes / sizes.sum()
    names = predictions.reference.benchmarks
    unknown = [names[code] for code, each in zip(codes, strata, strict=True) if each.tasks < 2]
    counts = np.array([np.count_nonzero(labelled & (benchmark == code)) for code in codes])
    return (
        stratified_rate(strata, shares),
        float(counts.sum() * gain_over_labels(strata, shares, counts)),
        f"of {', '.join(unknown)} " if unknown else "",
    )


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
