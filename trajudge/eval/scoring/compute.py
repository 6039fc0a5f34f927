"""Score judgments against expert labels, per benchmark, agent and label.

``score`` is the whole of it; it returns the records of ``eval.scoring.records``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.comparison.against_baseline import against_baseline
from trajudge.eval.comparison.judges import compare
from trajudge.eval.data.index.columns import JudgmentColumns
from trajudge.eval.data.index.judgments import columns_of, let_go
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.data.index.labels import LabelColumns, RewardColumns
from trajudge.eval.scoring.coverage import coverage_of, unsure
from trajudge.eval.scoring.estimated_rates import estimated_rates
from trajudge.eval.scoring.groups import TrajectoryGroup, groups
from trajudge.eval.scoring.intervals import Bootstrap, ScoredObservations, with_intervals
from trajudge.eval.scoring.metrics import (
    Counts,
    VerdictRates,
    WeightedCounts,
    rates,
    weighted_counts,
)
from trajudge.eval.scoring.observations import Observations, Predictions, one_per_trajectory
from trajudge.eval.scoring.protocol import ProtocolCounts, protocol_counts, protocol_rates
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    OVERALL,
    RULE_BASED,
    Coverage,
    EstimatedRate,
    JudgeUsage,
    Label,
    Missing,
    Score,
    ScoreReport,
)
from trajudge.eval.scoring.reference import ReferenceLabels, reward_notes
from trajudge.eval.scoring.stability import stability_notes
from trajudge.eval.scoring.success_rates import RateCells, success_rates
from trajudge.eval.scoring.training import on_training_set
from trajudge.eval.scoring.usage import judge_usage
from trajudge.eval.stats.interval import Bools
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.gc_pause import collection_paused

WEIGHTED = (
    "labels: drawn with unequal probabilities: every rate weights a label by one over its "
    "inclusion probability, while n counts labels"
)

__all__ = ["OVERALL", "Label", "Missing", "Score", "ScoreReport", "one_per_trajectory", "score"]


def score(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing = "negative",
    by_agent: bool = False,
    bootstrap: Bootstrap | None = None,
    compare_by_benchmark: bool = False,
    training: Mapping[str, Collection[TrajectoryKey]] | None = None,
) -> ScoreReport:
    """Score every judge on every benchmark and overall; ``by_agent`` also agent by agent. Judges
    are compared over all benchmarks, and where ``compare_by_benchmark`` also in each.

    ``rewards`` holds the official reward of every trajectory of the run (None: unknown). Several
    samples of one judge on one trajectory are one observation: their majority.

    ``training`` are trajectories that a judge was trained on: they are left out of its metrics and
    counted in its coverage.

    What a failed judgment counts as: ``negative``, as not accepted (a reward model would not have
    taken it); ``exclude``, not at all; ``agentrewardbench``, as the paper has it: a reply without
    the tag is 0, no valid reply is -1, and its arithmetic (``eval.scoring.protocol``) gives the
    rates.
    """
    bootstrap = bootstrap or Bootstrap()
    left_out = training or {}
    with collection_paused():
        columns = columns_of(judgments)
        reference = ReferenceLabels.of(
            columns.keys, LabelColumns.of(labels), RewardColumns.of(rewards)
        )
        if reference.is_weighted and missing == "agentrewardbench":
            raise UserError(
                "the labels were drawn with unequal probabilities, and the paper's arithmetic has "
                "no weights: score with --protocol default"
            )
        judges = [
            _judged(name, columns, mine, reference, left_out.get(name, ()))
            for name, mine in by_judge(columns)
        ]
        del columns
        let_go(judgments)
        rows = _Rows([], [], [], [], {})
        for judge in judges:
            rows.add(judge, missing, by_agent)
        predictions = {judge.name: judge.predictions for judge in judges}
        return ScoreReport(
            missing=missing,
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
            scores=tuple(with_intervals(rows.scored(missing))),
            success_rates=tuple(success_rates(rows.rates, missing)),
            estimated_rates=tuple(rows.estimated),
            against_baseline=tuple(
                against_baseline(rows.rates, exclude_missing=missing == "exclude")
            ),
            comparison=compare(predictions, missing, bootstrap, by_benchmark=compare_by_benchmark),
            coverage=tuple(rows.coverage),
            spending=tuple(judge.usage for judge in judges),
            remarks=(
                *(line for judge in judges for line in judge.remarks),
                *reward_notes(reference.reward),
                *([WEIGHTED] if reference.is_weighted else []),
            ),
        )


def by_judge(judgments: JudgmentColumns) -> Iterator[tuple[str, Bools]]:
    """Yield which judgments are a judge's, judges by name."""
    for name in sorted(judgments.judges):
        mine = judgments.judge == judgments.judges.index(name)
        if mine.any():
            yield name, mine


def _judged(
    name: str,
    judgments: JudgmentColumns,
    mine: Bools,
    reference: ReferenceLabels,
    training: Collection[TrajectoryKey],
) -> _Judged:
    """Read what one judge said, without the trajectories that it was trained on."""
    trained = np.zeros(len(reference), dtype=bool)
    index, judgments = reference.judged[mine], judgments.at(mine)
    usage = judge_usage(name, judgments)
    if training:
        places = reference.places(KeyColumns.of(training))
        trained[places[places >= 0]] = True
        judgments, index = judgments.at(~trained[index]), index[~trained[index]]
    predictions = Predictions.of(judgments, reference, index)
    remarks = (
        *stability_notes(judgments, len(predictions)),
        *on_training_set(name, len(training)),
    )
    return _Judged(name, predictions, trained, usage, remarks)


class _Judged(NamedTuple):
    """One judge: its predictions, which trajectories (T,) it was trained on, what it used, and what
    else is to be said."""

    name: str
    predictions: Predictions
    trained: Bools
    usage: JudgeUsage
    remarks: tuple[str, ...]

    def expected(self) -> Bools:
        """Mark the trajectories (T,) that the judge had to judge, or judged."""
        due = self.predictions.reference.in_run | self.trained
        due[self.predictions.index] = True
        return due


@dataclass
class _Rows:
    """The rows of the tables, in their order. ``rules`` are those of the baseline, which judges of
    the same trajectories share."""

    counted: list[_Counted]
    rates: list[RateCells]
    coverage: list[Coverage]
    estimated: list[EstimatedRate]
    rules: dict[tuple[TrajectoryGroup, bytes], _Counted]

    def add(self, judged: _Judged, missing: Missing, by_agent: bool) -> None:
        """Add every group of one judge."""
        judge, predictions = judged.name, judged.predictions
        expected = judged.expected()
        answers = {label: predictions.answered(label) for label in predictions.predicted_labels()}
        observed = {label: predictions.observe(label, missing) for label in answers}
        unknown = {label: unsure(predictions, label) for label in answers}
        listed = groups(predictions.reference, expected)
        self.estimated += estimated_rates(judge, predictions, listed, missing)
        for group in listed:
            detailed = by_agent or group.agent == ALL_AGENTS
            members = group.members(predictions.reference)
            if detailed:
                self.coverage.append(
                    coverage_of(
                        judge,
                        group,
                        predictions,
                        expected,
                        members,
                        training=judged.trained,
                        answers=answers,
                    )
                )
            inside = members[predictions.index]
            if not inside.any():
                continue
            cut = {label: each.where(members[each.index]) for label, each in observed.items()}
            self.rates.append(RateCells(judge, group, cut["success"]))
            for label in observed if detailed else ():
                left_out = int(np.count_nonzero(unknown[label] & inside))
                self._add_label(_Cell(judge, group, label, left_out), cut[label], missing)

    def _add_label(self, cell: _Cell, observations: Observations, missing: Missing) -> None:
        """Add the judge and, for success, the baseline on the trajectories it was scored on."""
        failed = len(observations) - int(np.count_nonzero(observations.answered))
        if missing == "exclude":
            observations = observations.where(observations.answered)
        self.counted.append(_counted(cell, observations, {"missing": failed}))
        if cell.label != "success" or cell.judge == RULE_BASED:
            return
        shared = cell.group, observations.trajectories
        if (rule := self.rules.get(shared)) is None:
            rewarded = ~np.isnan(observations.reward)
            more = {"baseline": True, "without_reward": int((~rewarded).sum())}
            by_rule = observations.where(rewarded).as_rule_based()
            rule = self.rules[shared] = _counted(cell, by_rule, more)
        self.counted.append(rule._replace(cell=cell))

    def scored(self, missing: Missing) -> list[ScoredObservations]:
        """Compute the metrics of all labels at once; intervals come later."""
        by_paper = missing == "agentrewardbench"
        names = MORE_RATES if by_paper else (*VerdictRates._fields, *MORE_RATES)
        computed = rates(names, [_cells(each) for each in self.counted])
        return [
            ScoredObservations(
                _score(
                    each,
                    dict(zip(names, values, strict=True))
                    | (protocol_rates(each.protocol).model_dump() if by_paper else {}),
                ),
                each.observations,
            )
            for each, values in zip(self.counted, computed, strict=True)
        ]


class _Cell(NamedTuple):
    """Identifies a score; ``unsure`` labels of the group are left out of it."""

    judge: str
    group: TrajectoryGroup
    label: Label
    unsure: int


class _Counted(NamedTuple):
    """What a score is computed from, and the fields of it that no metric tells."""

    cell: _Cell
    observations: Observations
    protocol: ProtocolCounts
    more: Mapping[str, Any]


MORE_RATES = ("kappa", "mcc", "balanced_accuracy", "fpr", "fnr", "over_accept_share")
"""Beside those of VerdictRates, in every protocol."""


def _cells(counted: _Counted) -> Counts | WeightedCounts:
    """Return what rates are computed from: counts, or sums of weights."""
    weights = counted.observations.weights
    if weights is None:
        return counted.protocol.counts
    return weighted_counts(counted.observations.labels, counted.observations.predictions, weights)


def _counted(cell: _Cell, observations: Observations, more: Mapping[str, Any]) -> _Counted:
    protocol = protocol_counts(observations.labels, observations.predictions)
    return _Counted(cell, observations, protocol, more)


def _score(counted: _Counted, metrics: Mapping[str, float | None]) -> Score:
    """Record the metrics of one label."""
    cell, protocol = counted.cell, counted.protocol
    fields = {
        "judge": cell.judge,
        "benchmark": cell.group.benchmark,
        "agent": cell.group.agent,
        "label": cell.label,
        "n": protocol.n,
        "positives": protocol.counts.positives + protocol.missing_positive,
        "counts": protocol.counts,
        "unsure": cell.unsure,
    }
    return Score(**fields, **counted.more, **metrics)
