"""Judges against each other, on the trajectories that both judged, label by label.

Precision, recall and F1 by their difference, with an interval over tasks; accuracy by McNemar's
exact test, over tasks, too, where all labels were drawn alike: it has no weights. Holm's correction
is over all pairs: of one metric, one label and one benchmark (or all of them).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import NamedTuple

import numpy as np

from trajudge.eval.comparison.paired import COMPARED, Paired, paired_differences
from trajudge.eval.comparison.two_by_two import compared_observations, on_the_same
from trajudge.eval.scoring.groups import TrajectoryGroup, groups
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.observations import Observations, Predictions
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    ALPHA,
    LABELS,
    OVERALL,
    Comparison,
    Label,
    McNemarResult,
    MetricDifference,
    Missing,
    Ranking,
    Rate,
)
from trajudge.eval.stats.interval import Floats
from trajudge.eval.stats.judging.comparison import (
    TaskRuns,
    holm,
    improvement,
    mcnemar,
    mcnemar_by_task,
)
from trajudge.eval.stats.judging.confusion import METRICS, confusion_columns

_NOTHING = Paired(None, None, None, None, "no trajectory was judged by both")


class ComparisonGroup(NamedTuple):
    """Judges that are compared: their observations of one label, in one benchmark or all."""

    benchmark: str
    label: Label
    judges: Mapping[str, Observations]


def compare(
    predictions: Mapping[str, Predictions],
    missing: Missing,
    bootstrap: Bootstrap,
    *,
    by_benchmark: bool = False,
) -> Comparison:
    """Compare all pairs of judges that were asked for a label, over all benchmarks, and where
    ``by_benchmark`` also in each; nothing where there is only one judge, or no resample."""
    if len(predictions) < 2 or not bootstrap.resamples:
        return Comparison()
    differences: list[MetricDifference] = []
    discordances: list[McNemarResult] = []
    rankings: list[Ranking] = []
    for group in _comparison_groups(predictions, missing, by_benchmark):
        pairs = [_Pair(group, a, b) for a, b in combinations(sorted(group.judges), 2)]
        found = _differences(group, pairs)
        differences += found
        if not any(judge.reference.is_weighted for judge in group.judges.values()):
            discordances += _mcnemar_results(group, pairs)
        rankings += [_ranking(metric, group, found) for metric in COMPARED]
    return Comparison(
        differences=tuple(differences),
        discordances=tuple(discordances),
        rankings=tuple(rankings),
    )


def _comparison_groups(
    predictions: Mapping[str, Predictions], missing: Missing, by_benchmark: bool
) -> Iterator[ComparisonGroup]:
    """Yield the whole first, label by label; where two judges or more were asked on labelled
    trajectories."""
    reference = next(iter(predictions.values())).reference
    benchmarks = [group for group in groups(reference) if group.agent == ALL_AGENTS]
    single = benchmarks[:-1] if by_benchmark and len(benchmarks) > 2 else []
    for group, label in product([TrajectoryGroup(OVERALL, ALL_AGENTS), *single], LABELS):
        members = group.members(reference)
        judges = {
            name: compared_observations(predicted, label, missing, members)
            for name, predicted in predictions.items()
            if label in predicted.predicted_labels()
        }
        if (group.benchmark, label) != (OVERALL, "success"):
            judges = {name: found for name, found in judges.items() if len(found)}
        if len(judges) > 1:
            yield ComparisonGroup(group.benchmark, label, judges)


class _Pair:
    """Two judges' observations of the same trajectories, in one order."""

    def __init__(self, group: ComparisonGroup, first: str, second: str) -> None:
        self.first, self.second = first, second
        self.one, self.other = on_the_same(group.judges[first], group.judges[second])


def _differences(group: ComparisonGroup, pairs: list[_Pair]) -> list[MetricDifference]:
    """Metric by metric, pairs in order; pairs on the same trajectories are computed together."""
    together: dict[bytes, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        together[pair.one.trajectories].append(pair)
    found: dict[tuple[str, str, str], MetricDifference] = {}
    for members in together.values():
        if len(members[0].one):
            same = list(_shared_differences(group, members))
        else:
            same = [_difference(group, *where, _NOTHING) for where in product(members, COMPARED)]
        found |= {(d.metric, d.first, d.second): d for d in same}
    return [
        found[metric, pair.first, pair.second].model_copy(update={"p_holm": _defined(p)})
        for metric in COMPARED
        for pair, p in zip(pairs, _holm(found, metric, pairs), strict=True)
    ]


def _holm(
    found: Mapping[tuple[str, str, str], MetricDifference], metric: Rate, pairs: list[_Pair]
) -> Floats:
    values = [found[metric, pair.first, pair.second].p for pair in pairs]
    return holm([np.nan if p is None else p for p in values])


def _difference(
    group: ComparisonGroup, pair: _Pair, metric: Rate, found: Paired
) -> MetricDifference:
    """Record a pair's difference, before Holm's correction."""
    return MetricDifference(
        benchmark=group.benchmark,
        label=group.label,
        metric=metric,
        first=pair.first,
        second=pair.second,
        n=len(pair.one),
        p_holm=None,
        **found._asdict(),
    )


def _shared_differences(group: ComparisonGroup, pairs: list[_Pair]) -> Iterator[MetricDifference]:
    """Differences of pairs of judges on the same trajectories."""
    judges = {pair.first: pair.one for pair in pairs} | {p.second: p.other for p in pairs}
    column = {name: number for number, name in enumerate(judges)}
    order = [(column[pair.first], column[pair.second]) for pair in pairs]
    for metric, found in paired_differences([*judges.values()], order).items():
        for pair, paired in zip(pairs, found, strict=True):
            yield _difference(group, pair, metric, paired)


def _mcnemar_results(group: ComparisonGroup, pairs: Sequence[_Pair]) -> list[McNemarResult]:
    tests = [mcnemar(pair.one.right, pair.other.right) for pair in pairs]
    tasks = {pair.one.trajectories: pair.one for pair in pairs}
    runs = {which: TaskRuns.of(one.task, one.benchmark) for which, one in tasks.items() if len(one)}
    values = [_p_value(pair, runs.get(pair.one.trajectories)) for pair in pairs]
    p_holm = holm(values)
    return [
        McNemarResult(
            benchmark=group.benchmark,
            label=group.label,
            first=pair.first,
            second=pair.second,
            n=len(pair.one),
            only_first_right=test.only_first,
            only_second_right=test.only_second,
            p=value,
            p_holm=float(p),
            **_improvement(pair, runs.get(pair.one.trajectories)),
        )
        for pair, test, value, p in zip(pairs, tests, values, p_holm, strict=True)
    ]


def _p_value(pair: _Pair, tasks: TaskRuns | None) -> float:
    """Return 1 without a trajectory: nothing tells the two apart."""
    return mcnemar_by_task(pair.one.right, pair.other.right, tasks) if tasks else 1.0


def _improvement(pair: _Pair, tasks: TaskRuns | None) -> dict[str, float | None]:
    """P(first > second) of being right, and its limits; None without a trajectory."""
    names = ("improvement", "improvement_low", "improvement_high")
    if tasks is None:
        return dict.fromkeys(names)
    interval = improvement(pair.one.right, pair.other.right, tasks)
    ends = np.stack([interval.estimate, interval.low, interval.high])[:, 0]
    return dict(zip(names, map(_defined, ends.tolist()), strict=True))


def _ranking(
    metric: Rate, group: ComparisonGroup, differences: Sequence[MetricDifference]
) -> Ranking:
    apart = {
        (d.first, d.second)
        for d in differences
        if d.metric == metric and d.p_holm is not None and d.p_holm <= ALPHA
    }
    values = {name: _value(metric, observations) for name, observations in group.judges.items()}
    order = sorted(values, key=lambda name: (np.isnan(values[name]), -values[name], name))
    undefined = [name for name in order if np.isnan(values[name])]
    return Ranking(
        benchmark=group.benchmark,
        label=group.label,
        metric=metric,
        judges=tuple(order),
        ties=tuple(_ties(order[: len(order) - len(undefined)], apart)),
        apart=tuple(sorted(apart)),
        undefined=tuple(undefined),
        equal=tuple(after for before, after in pairwise(order) if values[before] == values[after]),
    )


def _value(metric: Rate, observations: Observations) -> float:
    accepted, counted = observations.predictions == 1, observations.predictions >= 0
    columns = confusion_columns(accepted[:, None], observations.labels, counted[:, None])
    if (weights := observations.weights) is not None:
        columns = columns * weights[:, None]
    with np.errstate(invalid="ignore"):
        return float(METRICS[metric](*columns.sum(axis=0)))


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


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
