"""Success rates of agents by expert, judge and rule (AgentRewardBench Table 6), and estimates from
a judge over all runs and labels of some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.scoring.metrics import agentrewardbench_mean
from trajudge.eval.scoring.observations import (
    GroupObservations,
    Observations,
    Predictions,
    TrajectoryGroup,
)
from trajudge.eval.scoring.records import (
    OVERALL,
    RULE_BASED,
    EstimatedRate,
    Limits,
    Missing,
    SuccessRate,
)
from trajudge.eval.store.table import UNKNOWN
from trajudge.stats.comparison import PoweredRate, gain_over_labels, powered_rate, stratified_rate
from trajudge.stats.intervals import Bools, Interval, rates_by_cluster


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
    answered = predictions.answered("success")
    counted = answered if missing == "exclude" else np.ones(len(index), dtype=bool)
    labelled = counted & (reference.labels["success"][index] != UNKNOWN)
    unlabelled = counted & ~reference.annotated[index]
    if not (labelled.any() and unlabelled.any()):
        return
    for group in groups:
        members = group.members(reference)[index]
        if all((members & some).any() for some in (answered, labelled, unlabelled)):
            yield _estimate(judge, group, predictions, members & labelled, members & unlabelled)


def _estimate(
    judge: str, group: TrajectoryGroup, predictions: Predictions, labelled: Bools, unlabelled: Bools
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
        judge=judge,
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


def success_rates(cells: Sequence[GroupObservations], missing: Missing) -> list[SuccessRate]:
    """Compute the three rates of every cell of success; under the paper's protocol they are rounded
    to four digits, the rate of nothing is 0, and a missing verdict is no success."""
    counted = [cell.observations.counted(missing) for cell in cells]
    # Expert and reward are the trajectory's, whoever judges it: judges are computed together.
    together: dict[bytes, list[int]] = defaultdict(list)
    for place, each in enumerate(counted):
        together[each.trajectories].append(place)
    rates: dict[int, SuccessRate] = {}
    for places in together.values():
        # A reward is a share of a success: a log that punishes a failure with -1 has no smaller one
        # than none.
        first = counted[places[0]]
        rewarded = first.rewarded()
        accepted = [counted[place].predictions == 1 for place in places]
        expert, *verdicts = _means([first.labels, *accepted], first, missing)
        (rule,) = _means([np.clip(rewarded.reward, 0.0, 1.0)], rewarded, missing)
        for place, verdict in zip(places, verdicts, strict=True):
            is_known = counted[place].answered.any() or not len(first)
            by_judge = verdict if is_known else (None, None)
            means = {"expert": expert, "judge_rate": by_judge, "rule_based": rule}
            rates[place] = SuccessRate(
                judge=cells[place].judge,
                benchmark=cells[place].group.benchmark,
                agent=cells[place].group.agent,
                n=len(first),
                rewarded=len(rewarded),
                intervals={name: ends for name, (_, ends) in means.items() if ends is not None},
                **{name: mean for name, (mean, _) in means.items()},
            )
    return [rates[place] for place in range(len(cells))]


def _means(
    columns: Sequence[NDArray[Any]], observations: Observations, missing: Missing
) -> list[tuple[float | None, Limits | None]]:
    """Return the mean of each column (N,) with its limits, None where there are not two tasks."""
    if not len(observations):
        return [(0.0 if missing == "agentrewardbench" else None, None)] * len(columns)
    weights = observations.weights
    interval = rates_by_cluster(
        np.column_stack(columns),
        np.True_,
        observations.task,
        observations.benchmark,
        weights=weights,
    ).interval
    low, high = interval.low.tolist(), interval.high.tolist()
    limits = [None if isnan(a) else (a, b) for a, b in zip(low, high, strict=True)]
    if missing == "agentrewardbench":
        means = [agentrewardbench_mean(column.tolist()) for column in columns]
    elif weights is None:
        means = [float(column.mean()) for column in columns]
    else:
        means = [float(np.average(column, weights=weights)) for column in columns]
    return list(zip(means, limits, strict=True))
