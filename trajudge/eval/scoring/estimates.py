"""How often agents succeed over all runs, where experts labelled some: estimates from a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.scoring.observations import (
    Predictions,
    ReferenceLabels,
    Training,
    TrajectoryGroup,
    predictions_by_judge,
)
from trajudge.eval.scoring.records import (
    OVERALL,
    RULE_BASED,
    EstimatedRate,
    Limits,
    Missing,
    ScoreReport,
)
from trajudge.eval.store.table import UNKNOWN, JudgmentTable
from trajudge.judges.model import Judgment
from trajudge.stats.comparison import PoweredRate, gain_over_labels, powered_rate, stratified_rate
from trajudge.stats.intervals import Bools, Interval


def with_estimated_rates(
    report: ScoreReport, judgments: Iterable[Judgment], labels: Labels, training: Training
) -> ScoreReport:
    """Add to the scores of ``judgments`` the estimate of every group of which some judged
    trajectories have an expert label and others have no annotation; those whose label is unsure
    are left out, and what a judge was trained on.

    A failed judgment counts as not accepted, and not at all where ``missing`` is "exclude".
    Benchmarks are strata of the whole, by their shares of the trajectories. Labels that were drawn
    with unequal probabilities give none: ``trajudge label estimate`` does.
    """
    if not any(row.unlabelled for row in report.coverage):
        return report
    judgments = JudgmentTable.of(judgments)
    reference = ReferenceLabels.of(judgments.keys, labels, {})
    if reference.is_weighted:
        return report
    judges = predictions_by_judge(judgments, reference, training)
    rates = [rate for judge in judges for rate in _estimated_rates(judge, report.missing)]
    return report.model_copy(update={"estimated_rates": tuple(rates)})


def _estimated_rates(judge: Predictions, missing: Missing) -> Iterator[EstimatedRate]:
    if judge.judge == RULE_BASED:
        return
    reference, index = judge.reference, judge.index
    answered = judge.answered("success")
    counted = answered if missing == "exclude" else np.ones(len(index), dtype=bool)
    labelled = counted & (reference.labels["success"][index] != UNKNOWN)
    unlabelled = counted & ~reference.annotated[index]
    for group in judge.groups:
        members = group.members(reference)[index]
        if all((members & some).any() for some in (answered, labelled, unlabelled)):
            yield _estimate(judge, group, members & labelled, members & unlabelled)


def _estimate(
    predictions: Predictions, group: TrajectoryGroup, labelled: Bools, unlabelled: Bools
) -> EstimatedRate:
    whole = _powered(predictions, labelled, unlabelled)
    estimate, effective, unknown = whole.powered, whole.effective_labels, ""
    if group.benchmark == OVERALL:
        estimate, effective, unknown = _over_benchmarks(predictions, labelled, unlabelled)
    limits = {
        "estimate": _limits(estimate),
        "expert_only": _limits(whole.expert_only),
        "judge_only": _limits(whole.judge_only),
    }
    return EstimatedRate(
        judge=predictions.judge,
        benchmark=group.benchmark,
        agent=group.agent,
        labelled=int(labelled.sum()),
        unlabelled=int(unlabelled.sum()),
        labelled_tasks=whole.tasks,
        estimate=float(estimate.estimate[0]) if limits["estimate"] else None,
        expert_only=float(whole.expert_only.estimate[0]),
        judge_only=float(whole.judge_only.estimate[0]),
        effective_labels=None if np.isnan(effective) else effective,
        intervals={name: ends for name, ends in limits.items() if ends is not None},
        note=unknown + "; ".join(estimate.notes),
    )


def _limits(interval: Interval) -> Limits | None:
    low, high = float(interval.low[0]), float(interval.high[0])
    return None if np.isnan(low) else (low, high)


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
