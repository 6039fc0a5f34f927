"""Judges compared with each other and with the rule-based baseline, on the trajectories that both
judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from trajudge.eval.scoring.metrics import METRICS, count_cells
from trajudge.eval.scoring.observations import (
    ComparedJudges,
    GroupObservations,
    Observations,
    on_the_same,
)
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    ALPHA,
    RULE_BASED,
    Comparison,
    LabelName,
    McNemarResult,
    MetricDifference,
    Ranking,
)
from trajudge.stats.comparison import TaskRuns, holm, improvement, mcnemar_by_task
from trajudge.stats.intervals import Floats, clustered_differences, defined, verdict_columns

COMPARED = ("precision", "recall", "f1")

UNDEFINED = "one of the two is undefined: a denominator is zero"

ONE_TASK = "they share runs of one task only"

SAME = "the two say the same of every trajectory: no interval"

NOTHING = "no trajectory was judged by both"


@dataclass(frozen=True, eq=False)
class JudgePair:
    """Two judges by name, and their observations of the same trajectories, in one order."""

    first: str
    second: str
    one: Observations
    other: Observations


def compare(groups: Iterable[ComparedJudges]) -> Comparison:
    """Compare all pairs of judges of every group; the differences of all groups come first group
    by group, and so do tests and rankings. McNemar's test is for labels that were drawn alike."""
    differences: list[MetricDifference] = []
    discordances: list[McNemarResult] = []
    rankings: list[Ranking] = []
    for group in groups:
        pairs = [
            JudgePair(first, second, *on_the_same(group.judges[first], group.judges[second]))
            for first, second in combinations(sorted(group.judges), 2)
        ]
        tested = _differences(pairs, group.benchmark, group.label)
        differences += tested
        if not pairs[0].one.is_weighted:
            discordances += _mcnemar_results(pairs, group.benchmark, group.label)
        rankings += _rankings(group, tested)
    return Comparison(
        differences=tuple(differences),
        discordances=tuple(discordances),
        rankings=tuple(rankings),
    )


def against_baseline(cells: Iterable[GroupObservations]) -> list[MetricDifference]:
    """Differences, judge less rule, of every judge on success and every benchmark with all agents;
    trajectories without an official reward are left out. A judge that gave no answer has none."""
    pairs: dict[str, list[JudgePair]] = defaultdict(list)
    for cell in cells:
        if cell.rule is None or cell.group.agent != ALL_AGENTS:
            continue
        if cell.rewarded.answered.any():
            pair = JudgePair(cell.judge, RULE_BASED, cell.rewarded, cell.rule)
            pairs[cell.group.benchmark].append(pair)
    differences = []
    for benchmark, mine in pairs.items():
        differences += _differences(mine, benchmark, "success")
    return differences


def _differences(
    pairs: Sequence[JudgePair], benchmark: str, label: LabelName
) -> list[MetricDifference]:
    """Test every pair in every compared metric, metric by metric, with Holm's correction over the
    pairs. Pairs on the same trajectories are computed together."""
    together: dict[bytes, list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        together[pair.one.trajectories].append(place)
    tests: dict[tuple[str, int], dict[str, Any]] = {}
    for places in together.values():
        for metric, tested in _tested([pairs[place] for place in places]).items():
            tests |= {(metric, place): test for place, test in zip(places, tested, strict=True)}
    differences = []
    for metric in COMPARED:
        mine = [tests[metric, place] for place in range(len(pairs))]
        p_holm = holm([np.nan if test["p"] is None else test["p"] for test in mine]).tolist()
        for pair, test, p in zip(pairs, mine, p_holm, strict=True):
            differences.append(
                MetricDifference(
                    benchmark=benchmark,
                    label=label,
                    metric=metric,
                    first=pair.first,
                    second=pair.second,
                    n=len(pair.one),
                    p_holm=defined(p),
                    **test,
                )
            )
    return differences


def _tested(pairs: Sequence[JudgePair]) -> dict[str, list[dict[str, Any]]]:
    """Return, metric by metric, the difference of every pair on the same trajectories, its limits
    and p-value, None where there are none; and why."""
    first = pairs[0].one
    if not len(first):
        return dict.fromkeys(COMPARED, [_test(None, None, None, None, NOTHING)] * len(pairs))
    judges = {pair.first: pair.one for pair in pairs} | {pair.second: pair.other for pair in pairs}
    column = {name: number for number, name in enumerate(judges)}
    order = np.array([[column[pair.first], column[pair.second]] for pair in pairs]).T
    predictions = np.column_stack([each.predictions for each in judges.values()])
    labels = np.column_stack([each.labels for each in judges.values()])
    columns = verdict_columns(predictions, labels).reshape(len(first), 6 * len(judges))
    counts, squares, sizes = first.sum_by_task(columns, len(judges))
    same = (predictions[:, order[0]] == predictions[:, order[1]]).all(axis=0).tolist()
    metrics = [METRICS[name] for name in COMPARED]
    differences = clustered_differences(
        np.stack([metric.sum_hits(counts) for metric in metrics]),
        np.stack([metric.sum_trials(counts) for metric in metrics]),
        sizes,
        transform=_compared_values,
        squares=None
        if squares is None
        else np.stack([metric.sum_trials(squares) for metric in metrics]),
        pairs=order,
    )
    interval = differences.interval
    table = np.stack([interval.estimate, interval.low, interval.high, differences.p_value], axis=-1)
    tests: dict[str, list[dict[str, Any]]] = {name: [] for name in COMPARED}
    for mine, rows in zip(tests.values(), table.tolist(), strict=True):
        for (difference, low, high, p), is_same in zip(rows, same, strict=True):
            if np.isnan(difference):
                mine.append(_test(None, None, None, None, UNDEFINED))
            elif np.isnan(low):
                mine.append(_test(difference, None, None, None, ONE_TASK))
            elif is_same:
                mine.append(_test(difference, None, None, 1.0, SAME))
            else:
                mine.append(_test(difference, low, high, defined(p), ""))
    return tests


def _compared_values(rates: Floats) -> Floats:
    """Map the rates (..., len(COMPARED), P) of the compared metrics to their values."""
    values = rates.copy()
    for place, name in enumerate(COMPARED):
        values[..., place, :] = METRICS[name].transform(rates[..., place, :])
    return values


def _test(
    difference: float | None, low: float | None, high: float | None, p: float | None, note: str
) -> dict[str, Any]:
    return {"difference": difference, "low": low, "high": high, "p": p, "note": note}


class PairedCounts(NamedTuple):
    """Trajectories by who was right; ``p`` is McNemar's exact two-sided p, by tasks, None where
    the two are right and wrong on the same ones, and for labels that were drawn with unequal
    probabilities. ``failed_first`` and ``failed_second`` of them
    have a judgment without an answer."""

    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p: float | None
    failed_first: int
    failed_second: int

    @property
    def n(self) -> int:
        """Trajectories counted."""
        return self.both_right + self.only_first + self.only_second + self.both_wrong


def paired_counts(first: Observations, second: Observations) -> PairedCounts:
    """Count over the same trajectories, in one order, whether the two judges were right."""
    right, others, p = first.right, second.right, None
    if (right != others).any() and not first.is_weighted:
        p = mcnemar_by_task(right, others, TaskRuns.of(first.task, first.benchmark))
    return PairedCounts(
        both_right=int((right & others).sum()),
        only_first=int((right & ~others).sum()),
        only_second=int((others & ~right).sum()),
        both_wrong=int((~right & ~others).sum()),
        p=p,
        failed_first=int((~first.answered).sum()),
        failed_second=int((~second.answered).sum()),
    )


def _mcnemar_results(
    pairs: Sequence[JudgePair], benchmark: str, label: LabelName
) -> list[McNemarResult]:
    """Test who is right more often; without a trajectory nothing tells the two apart."""
    tests: list[dict[str, Any]] = [{} for _ in pairs]
    together: dict[bytes, list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        together[pair.one.trajectories].append(place)
    for places in together.values():
        one = pairs[places[0]].one
        right = np.stack([pairs[place].one.right for place in places])
        others = np.stack([pairs[place].other.right for place in places])
        only_first, only_second = (right & ~others).sum(axis=-1), (others & ~right).sum(axis=-1)
        for row, place in enumerate(places):
            tests[place] = {
                "only_first_right": int(only_first[row]),
                "only_second_right": int(only_second[row]),
                "p": 1.0,
            }
        if not len(one):
            continue
        tasks = TaskRuns.of(one.task, one.benchmark)
        better = improvement(right, others, tasks)
        for row, place in enumerate(places):
            tests[place] |= {
                "p": mcnemar_by_task(right[row], others[row], tasks),
                "improvement": defined(better.estimate[row]),
                "improvement_low": defined(better.low[row]),
                "improvement_high": defined(better.high[row]),
            }
    p_holm = holm([test["p"] for test in tests]).tolist()
    return [
        McNemarResult(
            benchmark=benchmark,
            label=label,
            first=pair.first,
            second=pair.second,
            n=len(pair.one),
            p_holm=p,
            **test,
        )
        for pair, test, p in zip(pairs, tests, p_holm, strict=True)
    ]


def _rankings(group: ComparedJudges, differences: Sequence[MetricDifference]) -> Iterator[Ranking]:
    """Yield the order of the judges by every compared metric, and who differs from whom."""
    counts = np.array(
        [
            count_cells(judge.labels, judge.predictions, judge.weights)
            for judge in group.judges.values()
        ]
    )
    for metric in COMPARED:
        apart = {
            (d.first, d.second)
            for d in differences
            if d.metric == metric and d.p_holm is not None and d.p_holm <= ALPHA
        }
        values = dict(zip(group.judges, METRICS[metric].value(counts).tolist(), strict=True))
        order = sorted(values, key=lambda name: (isnan(values[name]), -values[name], name))
        undefined = [name for name in order if isnan(values[name])]
        yield Ranking(
            benchmark=group.benchmark,
            label=group.label,
            metric=metric,
            judges=tuple(order),
            ties=tuple(_ties(order[: len(order) - len(undefined)], apart)),
            apart=tuple(sorted(apart)),
            undefined=tuple(undefined),
            equal=tuple(
                after for before, after in pairwise(order) if values[before] == values[after]
            ),
        )


def _ties(order: list[str], apart: set[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Longest runs of neighbours without a pair in ``apart``, two judges or more, then the other
    pairs that are not in it: on other trajectories, a judge between two may differ from both."""
    runs: list[tuple[str, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not any(
            _is_among(apart, judge, order[end]) for judge in order[start:end]
        ):
            end += 1
        if end - start > 1 and end > reached:
            runs.append(tuple(order[start:end]))
            reached = end
    together = {pair for run in runs for pair in combinations(run, 2)}
    return runs + [
        pair
        for pair in combinations(order, 2)
        if pair not in together and not _is_among(apart, *pair)
    ]


def _is_among(apart: set[tuple[str, str]], first: str, second: str) -> bool:
    return (first, second) in apart or (second, first) in apart
