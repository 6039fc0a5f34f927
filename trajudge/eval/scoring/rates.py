"""The rates of groups of observations: every metric of judges and of the rule-based baseline, and
success rates of agents by expert, judge and rule (AgentRewardBench Table 6), with their intervals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.scoring.metrics import (
    METRICS,
    SCORE_METRICS,
    VERDICT_METRICS,
    agentrewardbench_mean,
    agentrewardbench_rates,
    verdict_limits,
)
from trajudge.eval.scoring.observations import GroupObservations, Observations
from trajudge.eval.scoring.records import Counts, Limits, Missing, Score, SuccessRate
from trajudge.stats.intervals import (
    BIASED,
    ONE_TASK,
    clustered_scores,
    rates_by_cluster,
    sum_scores,
    verdict_columns,
)
from trajudge.util.errors import UserError

# The rates of a judge none of whose judgments gave an answer.
_UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(METRICS),
    **{name: {} for name in ("intervals", "no_interval", "design_effects")},
}


def scores_by_group(cells: Sequence[GroupObservations], missing: Missing) -> list[Score]:
    """Score every cell, and below success the rule-based baseline beside it. Observations of the
    same trajectories are computed together. Raises UserError for the paper's protocol with labels
    that were drawn with unequal probabilities."""
    if missing == "agentrewardbench" and any(cell.observations.is_weighted for cell in cells):
        raise UserError(
            "the labels were drawn with unequal probabilities, and the paper's arithmetic has "
            "no weights: score with --protocol default"
        )
    fields: list[dict[str, Any]] = []
    observed: list[Observations] = []
    for cell in cells:
        fields.append(
            {
                "judge": cell.judge,
                "baseline": False,
                "benchmark": cell.group.benchmark,
                "agent": cell.group.agent,
                "label": cell.label,
                "unsure": cell.unsure,
                "missing": cell.failed,
                "without_reward": 0,
            }
        )
        observed.append(cell.observations)
        if cell.rule is not None:
            without = len(cell.observations) - len(cell.rule)
            fields.append(fields[-1] | {"missing": 0, "baseline": True, "without_reward": without})
            observed.append(cell.rule)
    together: dict[bytes, list[int]] = defaultdict(list)
    for place, each in enumerate(observed):
        together[each.trajectories].append(place)
    for places in together.values():
        measured = _measure([observed[place] for place in places], missing)
        for place, metrics in zip(places, measured, strict=True):
            fields[place] |= metrics
            if len(observed[place]) and not observed[place].answered.any():
                fields[place] |= _UNKNOWN
    return [Score(**each) for each in fields]


def _measure(observed: Sequence[Observations], missing: Missing) -> list[dict[str, Any]]:
    """Compute all metrics of observations of the same trajectories, with what is known of their
    intervals: the fields of each Score. Equal ones, as the baseline's are, are computed once."""
    distinct_ones = {id(each): each for each in observed}
    place = {key: number for number, key in enumerate(distinct_ones)}
    judges = [*distinct_ones.values()]
    first = judges[0]
    # numpy adds up a row alone in another order than several
    columns = judges * 2 if len(judges) == 1 else judges
    outcomes = verdict_columns(
        np.column_stack([each.predictions for each in columns]),
        np.column_stack([each.labels for each in columns]),
    ).reshape(len(first), 6 * len(columns))
    counts, squares, sizes = first.sum_by_task(outcomes, len(columns))
    cells = outcomes.sum(axis=0).reshape(len(columns), 6)
    measured: list[dict[str, Any]] = [
        {
            "n": len(first),
            "tasks": int(sizes.sum()),
            "positives": tp + fn + missing_true,
            "counts": Counts(tp=tp, fp=fp, fn=fn, tn=tn),
            "intervals": {},
            "no_interval": {},
            "design_effects": {},
        }
        for tp, fp, fn, tn, missing_true, _ in cells[: len(judges)].tolist()
    ]
    limits = verdict_limits(counts, sizes, squares) if len(first) else {}
    for metric in VERDICT_METRICS:
        values = metric.value(counts.sum(axis=-2)).tolist()
        limited = limits.get(metric.name)
        for each, fields in enumerate(measured):
            value = values[each]
            fields[metric.name] = None if np.isnan(value) else value
            if limited is None:
                continue
            if limited.reason[each]:
                fields["no_interval"][metric.name] = limited.reason[each]
            elif not np.isnan(limited.low[each]):
                ends = float(limited.low[each]), float(limited.high[each])
                fields["intervals"][metric.name] = ends
                if limited.design_effect is not None:
                    effect = float(limited.design_effect[each])
                    fields["design_effects"][metric.name] = effect
    for number, mine in enumerate(judges):
        if missing == "agentrewardbench":
            measured[number] |= agentrewardbench_rates(cells[number])
        measured[number] |= _measure_scores(mine, measured[number])
    return [measured[place[id(each)]] for each in observed]


def _measure_scores(observations: Observations, fields: dict[str, Any]) -> dict[str, Any]:
    """Compute the metrics of the judge's scores, where it gave any; their intervals are added to
    those in ``fields``."""
    scored = observations.at(~np.isnan(observations.scores))
    metrics: dict[str, Any] = dict.fromkeys((metric.name for metric in SCORE_METRICS), None)
    metrics["scored"] = len(scored)
    if not len(scored):
        return metrics
    weights = 1.0 if scored.weights is None else scored.weights
    clusters = sum_scores(
        scored.scores, scored.labels, scored.task, scored.benchmark, weights=weights
    )
    interval = clustered_scores(clusters.sums, clusters.stratum_sizes)
    ends = zip(interval.estimate, interval.low, interval.high, strict=True)
    for metric, (value, low, high) in zip(SCORE_METRICS, ends, strict=True):
        if np.isnan(value):
            continue
        metrics[metric.name] = float(value)
        if np.isnan(low):
            reason = BIASED if metric.name == "calibration_error" else ONE_TASK
            fields["no_interval"][metric.name] = reason
        else:
            fields["intervals"][metric.name] = (float(low), float(high))
    return metrics


def success_rates(cells: Sequence[GroupObservations], missing: Missing) -> list[SuccessRate]:
    """Compute the three rates of every cell of success; under the paper's protocol they are rounded
    to four digits, the rate of nothing is 0, and a missing verdict is no success."""
    # Expert and reward are the trajectory's, whoever judges it: judges are computed together.
    together: dict[bytes, list[int]] = defaultdict(list)
    for place, cell in enumerate(cells):
        together[cell.observations.trajectories].append(place)
    rates: dict[int, SuccessRate] = {}
    for places in together.values():
        # A reward is a share of a success: a log that punishes a failure with -1 has no smaller one
        # than none.
        first, rewarded = cells[places[0]].observations, cells[places[0]].rewarded
        accepted = [cells[place].observations.predictions == 1 for place in places]
        rewards = [np.clip(rewarded.reward, 0.0, 1.0)]
        if len(rewarded) == len(first):
            columns = [first.labels, *rewards, *accepted]
            expert, rule, *verdicts = _means(columns, first, missing)
        else:
            expert, *verdicts = _means([first.labels, *accepted], first, missing)
            (rule,) = _means(rewards, rewarded, missing)
        for place, verdict in zip(places, verdicts, strict=True):
            is_known = cells[place].observations.answered.any() or not len(first)
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
    weights, task = observations.weights, observations.task
    limits: list[Limits | None] = [None] * len(columns)
    if (task != task[0]).any():
        interval = rates_by_cluster(
            np.column_stack(columns), np.True_, task, observations.benchmark, weights=weights
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
