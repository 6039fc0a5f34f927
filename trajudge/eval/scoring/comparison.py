"""Judges compared with each other and with the rule-based baseline, on the trajectories that both
judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import NamedTuple

import numpy as np

from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.observations import Observations, Predictions, TrajectoryGroup, groups
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    ALPHA,
    LABELS,
    OVERALL,
    RULE_BASED,
    Comparison,
    Label,
    McNemarResult,
    MetricDifference,
    Missing,
    Ranking,
    Rate,
)
from trajudge.eval.scoring.success_rates import RateCells
from trajudge.stats.comparison import (
    METRICS,
    TaskRuns,
    confusion_columns,
    holm,
    improvement,
    mcnemar,
    mcnemar_by_task,
)
from trajudge.stats.intervals import PARTS, Bools, Floats, clustered_differences, verdict_columns

COMPARED: tuple[Rate, ...] = ("precision", "recall", "f1")

UNDEFINED = "one of the two is undefined: a denominator is zero"

ONE_TASK = "they share runs of one task only"

SAME = "the two say the same of every trajectory: no interval"


class Paired(NamedTuple):
    """``first - second``, its 95 % limits and p-value, None where there are none; and why."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    note: str


def paired_differences(
    evaluators: Sequence[Observations], pairs: Sequence[tuple[int, int]]
) -> dict[Rate, list[Paired]]:
    """Compare every pair of evaluators of the same trajectories, which are in one order."""
    observations = evaluators[0]
    predictions = np.column_stack([one.predictions for one in evaluators])
    labels = np.column_stack([one.labels for one in evaluators])
    columns = verdict_columns(predictions, labels).reshape(len(observations), -1)
    counts, squares, sizes = observations.sum_by_task(columns, len(evaluators))
    order = np.array(pairs, dtype=np.int64).T
    same = (predictions[:, order[0]] == predictions[:, order[1]]).all(axis=0)
    by_metric: dict[Rate, list[Paired]] = {}
    for metric in COMPARED:
        hits, trials = (counts[..., list(part)].sum(axis=-1)[order] for part in PARTS[metric])
        transform = _f1 if metric == "f1" else np.asarray
        of_trials = None
        if squares is not None:
            of_trials = squares[..., list(PARTS[metric][1])].sum(axis=-1)[order]
        differences = clustered_differences(
            hits, trials, sizes, transform=transform, squares=of_trials
        )
        interval = differences.interval
        table = np.stack(
            [interval.estimate, interval.low, interval.high, differences.p_value], axis=-1
        )
        by_metric[metric] = [
            _paired([None if np.isnan(x) else x for x in row], still)
            for row, still in zip(table.tolist(), same.tolist(), strict=True)
        ]
    return by_metric


def _paired(values: list[float | None], still: bool) -> Paired:
    difference, low, high, p = values
    if difference is None:
        return Paired(None, None, None, None, UNDEFINED)
    if low is None:
        return Paired(difference, None, None, None, ONE_TASK)
    if still:
        return Paired(difference, None, None, 1.0, SAME)
    return Paired(difference, low, high, p, "")


def _f1(jaccard: Floats) -> Floats:
    return np.asarray(2 * jaccard / (1 + jaccard))


def against_baseline(
    cells: Iterable[RateCells], *, exclude_missing: bool
) -> list[MetricDifference]:
    """Differences, judge less rule, of every judge and benchmark with all agents; trajectories
    without an official reward are left out, failed judgments where ``exclude_missing``."""
    together: dict[tuple[str, bytes], list[tuple[str, Observations]]] = {}
    for cell in cells:
        if cell.judge == RULE_BASED or cell.group.agent != ALL_AGENTS:
            continue
        observations = cell.observations.where(~np.isnan(cell.observations.reward))
        if exclude_missing:
            observations = observations.where(observations.answered)
        if len(observations):
            shared = cell.group.benchmark, observations.trajectories
            together.setdefault(shared, []).append((cell.judge, observations))
    differences = [
        difference
        for (benchmark, _), judges in together.items()
        for difference in _differences(benchmark, judges)
    ]
    return _corrected(differences)


def _differences(
    benchmark: str, judges: Sequence[tuple[str, Observations]]
) -> Iterator[MetricDifference]:
    """Of judges on the same trajectories."""
    rule = judges[0][1].as_rule_based()
    pairs = [(number, len(judges)) for number in range(len(judges))]
    by_metric = paired_differences([*(observations for _, observations in judges), rule], pairs)
    for number, (judge, observations) in enumerate(judges):
        for metric, of_judges in by_metric.items():
            yield MetricDifference(
                benchmark=benchmark,
                metric=metric,
                first=judge,
                second=RULE_BASED,
                n=len(observations),
                p_holm=None,
                **of_judges[number]._asdict(),
            )


def _corrected(differences: list[MetricDifference]) -> list[MetricDifference]:
    """With Holm's correction over the judges of one benchmark and metric."""
    families: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(differences):
        families.setdefault((each.benchmark, each.metric), []).append(place)
    corrected = [*differences]
    for places in families.values():
        p_values = holm([np.nan if (p := differences[i].p) is None else p for i in places])
        for place, p in zip(places, p_values.tolist(), strict=True):
            value = None if np.isnan(p) else p
            corrected[place] = differences[place].model_copy(update={"p_holm": value})
    return corrected


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


def compared_observations(
    predictions: Predictions, label: Label, missing: Missing, members: Bools | None = None
) -> Observations:
    """Observe a judge that is held against others, of the trajectories ``members`` (T,) of its
    reference, all without it: a failed judgment counts as ``missing`` says, or is left out."""
    observations = predictions.observe(label, missing)
    counted = np.ones(len(observations), dtype=bool)
    if missing == "exclude":
        counted &= observations.answered
    if members is not None:
        counted &= members[observations.index]
    return observations.where(counted)


def on_the_same(first: Observations, second: Observations) -> tuple[Observations, Observations]:
    """Keep the trajectories of one reference that both hold, in one order."""
    if first.trajectories == second.trajectories:
        return first, second
    _, here, there = np.intersect1d(
        first.index, second.index, assume_unique=True, return_indices=True
    )
    return first.at(here), second.at(there)


def paired_counts(first: Observations, second: Observations) -> PairedCounts:
    """Count over the same trajectories, in one order, whether the two judges were right."""
    test, p = mcnemar(first.right, second.right), None
    if test.only_first + test.only_second and not first.reference.is_weighted:
        tasks = TaskRuns.of(first.task, first.benchmark)
        p = mcnemar_by_task(first.right, second.right, tasks)
    return PairedCounts(
        both_right=int((first.right & second.right).sum()),
        only_first=test.only_first,
        only_second=test.only_second,
        both_wrong=int((~first.right & ~second.right).sum()),
        p=p,
        failed_first=int((~first.answered).sum()),
        failed_second=int((~second.answered).sum()),
    )


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
        tested = _judge_differences(group, pairs)
        differences += tested
        if not any(judge.reference.is_weighted for judge in group.judges.values()):
            discordances += _mcnemar_results(group, pairs)
        rankings += [_ranking(metric, group, tested) for metric in COMPARED]
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
            judges = {name: some for name, some in judges.items() if len(some)}
        if len(judges) > 1:
            yield ComparisonGroup(group.benchmark, label, judges)


class _Pair:
    """Two judges' observations of the same trajectories, in one order."""

    def __init__(self, group: ComparisonGroup, first: str, second: str) -> None:
        self.first, self.second = first, second
        self.one, self.other = on_the_same(group.judges[first], group.judges[second])


def _judge_differences(group: ComparisonGroup, pairs: list[_Pair]) -> list[MetricDifference]:
    """Metric by metric, pairs in order; pairs on the same trajectories are computed together."""
    together: dict[bytes, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        together[pair.one.trajectories].append(pair)
    differences: dict[tuple[str, str, str], MetricDifference] = {}
    for members in together.values():
        if len(members[0].one):
            same = list(_shared_differences(group, members))
        else:
            same = [_difference(group, *where, _NOTHING) for where in product(members, COMPARED)]
        differences |= {(d.metric, d.first, d.second): d for d in same}
    return [
        differences[metric, pair.first, pair.second].model_copy(update={"p_holm": _defined(p)})
        for metric in COMPARED
        for pair, p in zip(pairs, _holm(differences, metric, pairs), strict=True)
    ]


def _holm(
    differences: Mapping[tuple[str, str, str], MetricDifference], metric: Rate, pairs: list[_Pair]
) -> Floats:
    values = [differences[metric, pair.first, pair.second].p for pair in pairs]
    return holm([np.nan if p is None else p for p in values])


def _difference(
    group: ComparisonGroup, pair: _Pair, metric: Rate, paired: Paired
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
        **paired._asdict(),
    )


def _shared_differences(group: ComparisonGroup, pairs: list[_Pair]) -> Iterator[MetricDifference]:
    """Differences of pairs of judges on the same trajectories."""
    judges = {pair.first: pair.one for pair in pairs} | {p.second: p.other for p in pairs}
    column = {name: number for number, name in enumerate(judges)}
    order = [(column[pair.first], column[pair.second]) for pair in pairs]
    for metric, results in paired_differences([*judges.values()], order).items():
        for pair, paired in zip(pairs, results, strict=True):
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


def mixed_versions(versions: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Warn of every judge that stands beside itself in another version.

    ``versions`` holds, by the judge's id in the table, the versions on the cards of that judge and
    of its members (``eval.data.manifest.recorded_versions``).
    """
    by_name: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for judge_id, cards in versions.items():
        for name, version in cards.items():
            by_name[name][version].append(judge_id)
    for name, by_version in sorted(by_name.items()):
        if len(by_version) > 1:
            listed = "; ".join(
                f"version {version} in {', '.join(sorted(ids))}"
                for version, ids in sorted(by_version.items())
            )
            yield (
                f"warning: judge {name} is compared in several versions ({listed}): they differ in "
                f"their prompts as well; judge again with the version of this release "
                f"(trajudge judges show {name})"
            )
