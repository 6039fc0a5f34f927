"""Score judgments against expert labels, per benchmark, agent and label: metrics with intervals,
coverage and stability.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.rungs import RUNGS, WHOLE
from trajudge.eval.scoring.comparison import Compared, against_baseline, compare
from trajudge.eval.scoring.metrics import (
    METRICS,
    SCORE_METRICS,
    VERDICT_METRICS,
    agentrewardbench_rates,
    verdict_limits,
)
from trajudge.eval.scoring.observations import (
    GroupObservations,
    Observations,
    Predictions,
    ReferenceLabels,
    TrajectoryGroup,
    groups,
    on_training_set,
    reward_notes,
)
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    RULE_BASED,
    WEIGHTED,
    Counts,
    Coverage,
    JudgeUsage,
    Missing,
    Score,
    ScoreReport,
)
from trajudge.eval.scoring.success_rates import estimated_rates, success_rates
from trajudge.eval.scoring.usage import judge_usage
from trajudge.eval.store.labels import LabelColumns, RewardColumns
from trajudge.eval.store.table import (
    STATUSES,
    UNKNOWN,
    Codes,
    JudgmentTable,
    KeyColumns,
    distinct,
)
from trajudge.judges.model import Judgment
from trajudge.stats.intervals import (
    BIASED,
    ONE_TASK,
    Bools,
    Ints,
    clustered_scores,
    score_columns,
    sum_clusters,
    verdict_columns,
)
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.machine import collection_paused
from trajudge.util.terminal import count_of

# The rates of a judge none of whose judgments gave an answer.
_UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(METRICS),
    **{name: {} for name in ("intervals", "no_interval", "design_effects")},
}


def score(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing = "negative",
    by_agent: bool = False,
    compared: Compared | None = "overall",
    training: Mapping[str, Collection[TrajectoryKey]] | None = None,
) -> ScoreReport:
    """Score every judge on every benchmark and overall; ``by_agent`` also agent by agent. Judges
    are ``compared`` over all benchmarks, in each as well, or not at all (None).

    ``rewards`` holds the official reward of every trajectory of the run (None: unknown). Several
    samples of one judge on one trajectory are one observation: their majority.

    ``training`` are trajectories that a judge was trained on: they are left out of its metrics and
    counted in its coverage.

    What a failed judgment counts as: ``negative``, as not accepted (a reward model would not have
    taken it); ``exclude``, not at all; ``agentrewardbench``, as the paper has it: a reply without
    the tag is 0, no valid reply is -1, and its arithmetic (``metrics.agentrewardbench_rates``)
    gives the rates. Where no judgment gave an answer no rate is known, whatever failures count as.
    """
    with collection_paused():
        judges, reference = _read_judges(judgments, labels, rewards, missing, training)
        cells = [cell for judge in judges for cell in judge.cells(missing, by_agent)]
        of_success = [cell for cell in cells if cell.label == "success"]
        detailed = [cell for cell in cells if by_agent or cell.group.agent == ALL_AGENTS]
        return ScoreReport(
            missing=missing,
            compared=compared is not None,
            scores=tuple(_scores(detailed, missing)),
            success_rates=tuple(success_rates(of_success, missing)),
            estimated_rates=tuple(
                rate
                for judge in judges
                for rate in estimated_rates(judge.name, judge.predictions, judge.groups, missing)
            ),
            against_baseline=tuple(against_baseline(of_success, missing)),
            comparison=compare({j.name: j.predictions for j in judges}, missing, compared),
            coverage=tuple(row for judge in judges for row in judge.coverage(by_agent)),
            spending=tuple(judge.usage for judge in judges),
            remarks=(
                *(line for judge in judges for line in judge.remarks),
                *reward_notes(reference.reward),
                *([WEIGHTED] if reference.is_weighted else []),
            ),
        )


def metric_scores(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing = "negative",
    by_agent: bool = False,
    training: Mapping[str, Collection[TrajectoryKey]] | None = None,
) -> tuple[Score, ...]:
    """Compute the ``scores`` of ``score`` alone; arguments as there."""
    with collection_paused():
        judges, _ = _read_judges(judgments, labels, rewards, missing, training)
        cells = [cell for judge in judges for cell in judge.cells(missing, by_agent)]
        chosen = [cell for cell in cells if by_agent or cell.group.agent == ALL_AGENTS]
        return tuple(_scores(chosen, missing))


def _read_judges(
    judgments: Iterable[Judgment],
    labels: Labels,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing,
    training: Mapping[str, Collection[TrajectoryKey]] | None,
) -> tuple[list[_Judge], ReferenceLabels]:
    columns = JudgmentTable.of(judgments)
    reference = ReferenceLabels.of(columns.keys, LabelColumns.of(labels), RewardColumns.of(rewards))
    if reference.is_weighted and missing == "agentrewardbench":
        raise UserError(
            "the labels were drawn with unequal probabilities, and the paper's arithmetic has "
            "no weights: score with --protocol default"
        )
    judges = [
        _Judge.of(name, columns.at(mine), reference.judged[mine], reference, training or {})
        for name, mine in by_judge(columns)
    ]
    return judges, reference


def by_judge(judgments: JudgmentTable) -> Iterator[tuple[str, Bools]]:
    """Yield which judgments are a judge's, judges by name."""
    for name in sorted(judgments.judges):
        mine = judgments.judge == judgments.judges.index(name)
        if mine.any():
            yield name, mine


@dataclass(frozen=True, eq=False)
class _Judge:
    """One judge: its predictions, which trajectories (T,) it had to judge and which it was trained
    on, their groups, what it used, and what else is to be said."""

    name: str
    predictions: Predictions
    due: Bools
    trained: Bools
    groups: list[TrajectoryGroup]
    usage: JudgeUsage
    remarks: tuple[str, ...]

    @classmethod
    def of(
        cls,
        name: str,
        judgments: JudgmentTable,
        index: Codes,
        reference: ReferenceLabels,
        training: Mapping[str, Collection[TrajectoryKey]],
    ) -> _Judge:
        """Read a judge's judgments, at ``index`` (N,) of the reference, without the trajectories
        that it was trained on."""
        usage = judge_usage(name, judgments)
        trained = np.zeros(len(reference), dtype=bool)
        keys = training.get(name, ())
        if keys:
            places = reference.places(KeyColumns.of(keys))
            trained[places[places >= 0]] = True
            judgments, index = judgments.at(~trained[index]), index[~trained[index]]
        predictions = Predictions.of(judgments, reference, index)
        due = reference.in_run | trained
        due[predictions.index] = True
        remarks = (*stability_notes(judgments, len(predictions)), *on_training_set(name, len(keys)))
        return cls(name, predictions, due, trained, groups(reference, due), usage, remarks)

    def cells(self, missing: Missing, by_agent: bool) -> Iterator[GroupObservations]:
        """Observe every group on every label; agents, unless ``by_agent``, on success alone."""
        predictions, reference = self.predictions, self.predictions.reference
        observed = {label: predictions.observe(label, missing) for label in predictions.labels()}
        unsure = {
            label: (reference.annotated & (reference.labels[label] == UNKNOWN))[predictions.index]
            for label in observed
        }
        for group in self.groups:
            members = group.members(reference)
            inside = members[predictions.index]
            for label, whole in observed.items() if inside.any() else ():
                if by_agent or group.agent == ALL_AGENTS or label == "success":
                    left_out = int(np.count_nonzero(unsure[label] & inside))
                    yield GroupObservations(
                        self.name, group, label, whole.at(members[whole.index]), left_out
                    )

    def coverage(self, by_agent: bool) -> Iterator[Coverage]:
        """Count how the judgments of every group ended."""
        predictions, reference = self.predictions, self.predictions.reference
        answered = {label: predictions.answered(label) for label in predictions.labels()}
        positive = {
            label: gave & (predictions.values[label] == 1) for label, gave in answered.items()
        }
        unlabelled = ~reference.annotated[predictions.index]
        due = self.due & ~self.trained
        for group in self.groups:
            if not (by_agent or group.agent == ALL_AGENTS):
                continue
            members = group.members(reference)
            inside = members[predictions.index]
            ended = np.bincount(predictions.status[inside], minlength=len(STATUSES)).tolist()
            cut = np.bincount(predictions.rung[inside], minlength=len(RUNGS)).tolist()
            judged = int(inside.sum())
            yield Coverage(
                judge=self.name,
                benchmark=group.benchmark,
                agent=group.agent,
                judged=judged,
                statuses={status: n for status, n in zip(STATUSES, ended, strict=True) if n},
                shortened={r: n for r, n in zip(RUNGS, cut, strict=True) if n and r != WHOLE},
                unjudged=int((due & members).sum()) - judged,
                unlabelled=int((inside & unlabelled).sum()),
                training=int((self.trained & members).sum()),
                verdicts={label: int((inside & gave).sum()) for label, gave in answered.items()},
                positive={label: int((inside & yes).sum()) for label, yes in positive.items()},
            )


def _scores(cells: Sequence[GroupObservations], missing: Missing) -> list[Score]:
    """Score every cell, and below success the rule-based baseline on the same trajectories, which
    judges of the same ones share. Observations of the same trajectories are computed together."""
    fields: list[dict[str, Any]] = []
    observed: list[Observations] = []
    rules: dict[tuple[TrajectoryGroup, bytes], Observations] = {}
    for cell in cells:
        counted = cell.observations.counted(missing)
        whole, answered = len(cell.observations), int(cell.observations.answered.sum())
        fields.append(
            {
                "judge": cell.judge,
                "benchmark": cell.group.benchmark,
                "agent": cell.group.agent,
                "label": cell.label,
                "unsure": cell.unsure,
                "missing": whole - answered,
            }
        )
        observed.append(counted)
        if cell.label != "success" or cell.judge == RULE_BASED:
            continue
        shared = cell.group, counted.trajectories
        if shared not in rules:
            rules[shared] = counted.rewarded().as_rule_based()
        rule = rules[shared]
        without = len(counted) - len(rule)
        fields.append(fields[-1] | {"missing": 0, "baseline": True, "without_reward": without})
        observed.append(rule)
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
    columns = score_columns(scored.scores, scored.labels)
    if (weights := scored.weights) is not None:
        columns = columns * weights[:, None]
    clusters = sum_clusters(columns, scored.task, scored.benchmark)
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


def stability_notes(judgments: JudgmentTable, trajectories: int) -> list[str]:
    """Sentences about one judge of so many trajectories for the notes below the tables."""
    several = len(judgments) > trajectories
    samples = [*_flips(judgments), *_failed_samples(judgments)] if several else []
    return [*samples, *_cascade(judgments)]


def flip_rate(judgments: JudgmentTable) -> tuple[int, int]:
    """(trajectories whose samples disagree on success, trajectories with two verdicts or more);
    failed samples are left out."""
    success = judgments.verdict("success")
    decided = judgments.ok() & (success != UNKNOWN)
    _, place = distinct(judgments.keys.at(decided))
    verdicts = np.bincount(place)
    accepted = np.bincount(place, weights=success[decided])
    flipped = (accepted > 0) & (accepted < verdicts)
    return int(flipped.sum()), int((verdicts > 1).sum())


def repeated_note(judgments: JudgmentTable, last: Ints) -> str:
    """Say how many judgments come more than once, of which ``last`` are the rows that count, and
    how many with another verdict; a failed one that was asked for again contradicts nothing."""
    places = distinct(judgments.keys)[1]
    each = np.stack((judgments.judge, places, judgments.sample))
    one = np.unique(each, axis=1, return_inverse=True)[1].ravel()
    counted = np.empty(len(last), dtype=np.int64)
    counted[one[last]] = last
    earlier = np.setdiff1d(np.arange(len(judgments)), last)
    now, verdicts, ok = counted[one[earlier]], judgments.verdicts, judgments.ok()
    other = (verdicts[:, earlier] != verdicts[:, now]).any(axis=0) & ok[earlier] & ok[now]
    repeated, different = len(np.unique(now)), len(np.unique(now[other]))
    return (
        f"holds {count_of(repeated, 'judgment')} more than once, {different} of them with another "
        "verdict: the last of each counts"
    )


def _flips(judgments: JudgmentTable) -> list[str]:
    flipped, repeated = flip_rate(judgments)
    if not repeated:
        return []
    rate = f"{100 * flipped / repeated:.1f} %"
    return [
        f"{_name(judgments)}: samples disagree on {flipped} of {repeated} trajectories "
        f"(flip rate {rate})"
    ]


def _failed_samples(judgments: JudgmentTable) -> list[str]:
    """Those beside which another sample decides: coverage counts trajectories alone."""
    known, place = distinct(judgments.keys)
    ok = judgments.ok()
    decided = np.bincount(place[ok], minlength=len(known)) > 0
    failed = judgments.status[~ok & decided[place]]
    if not len(failed):
        return []
    counts = np.bincount(failed, minlength=len(STATUSES)).tolist()
    each = ", ".join(f"{status} {n}" for status, n in zip(STATUSES, counts, strict=True) if n)
    return [
        f"{_name(judgments)}: {len(failed):,} of {len(judgments):,} samples failed ({each}); the "
        "others of their trajectories count"
    ]


def _cascade(judgments: JudgmentTable) -> list[str]:
    """Asked and spared; what was spared is priced by the mean of what was asked."""
    settled = ~np.isnan(judgments.second_asked)
    if not settled.any():
        return []
    reached = settled & (judgments.second_asked != 0)
    count, spared = int(reached.sum()), int((settled & ~reached).sum())
    shares = f"{count} of {count + spared} trajectories"
    line = f"{_name(judgments)}: the second member was asked on {shares}"
    calls = judgments.calls
    # The ledger names the member before the stage: what the first one did not ask is the second's.
    members = np.array([name.split(" ")[0] for name in calls.stages], dtype=object)
    member = members[calls.stage]
    first = set(member[(settled & ~reached)[calls.judgment]].tolist())
    of_second = reached[calls.judgment] & np.array([one not in first for one in member], dtype=bool)
    costs = calls.cost[of_second]
    if count and spared and len(costs) and not np.isnan(costs).any():
        spent = sum(costs.tolist())
        line += f"; it cost ${spent:.4f}, sparing the others about ${spent / count * spared:.4f}"
    return [line]


def _name(judgments: JudgmentTable) -> str:
    return judgments.judges[int(judgments.judge[0])]
