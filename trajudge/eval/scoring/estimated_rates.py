"""Success rates of agents from a judge over all runs and expert labels of a few."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trajudge.eval.scoring.groups import TrajectoryGroup
from trajudge.eval.scoring.observations import Predictions
from trajudge.eval.scoring.records import (
    OVERALL,
    RULE_BASED,
    EstimatedRate,
    EstimatedRateName,
    Limits,
    Missing,
)
from trajudge.eval.scoring.reference import UNKNOWN
from trajudge.eval.stats.interval import Bools, Interval
from trajudge.eval.stats.judging.prediction_powered import (
    PoweredRate,
    gain_over_labels,
    powered_rate,
    stratified_rate,
)


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
