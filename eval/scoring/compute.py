"""Score judgments against expert labels, per benchmark, agent and label.

``score`` is the whole of it; it returns the records of ``eval.scoring.records``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

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
from trajudge.eval.scoring.metrics import VerdictRates, rates
from trajudge.eval.scoring.observations import Observations, Predictions, one_per_trajectory
from trajudge.eval.scoring.protocol import protocol_counts, protocol_rates
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
from trajudge.eval.scoring.reference import ReferenceLabels
from trajudge.eval.scoring.stability import stability_notes
from trajudge.eval.scoring.success_rates import RateCells, success_rates
from trajudge.eval.scoring.training import on_training_set
from trajudge.eval.scoring.usage import judge_usage
from trajudge.eval.stats.interval import Bools
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.gc_pause import collection_paused

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
        judges = [
            _judged(name, columns, mine, reference, left_out.get(name, ()))
            for name, mine in _by_judge(columns)
        ]
        del columns
        let_go(judgments)
        rows = _Rows([], [], [], [])
        for judge in judges:
            rows.add(judge, missing, by_agent)
        predictions = {judge.name: judge.predictions for judge in judges}
        return ScoreReport(
            missing=missing,
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
            scores=tuple(with_intervals(rows.scored)),
            success_rates=tuple(success_rates(rows.rates, missing)),
            estimated_rates=tuple(rows.estimated),
            against_baseline=tuple(
                against_baseline(rows.rates, exclude_missing=missing == "exclude")
            ),
            comparison=compare(predictions, missing, bootstrap, by_benchmark=compare_by_benchmark),
            coverage=tuple(rows.coverage),
            spending=tuple(judge.usage for judge in judges),
            remarks=tuple(line for judge in judges for line in judge.remarks),
        )


def _by_judge(judgments: JudgmentColumns) -> Iterator[tuple[str, Bools]]:
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
    """The rows of the tables, in their order."""

    scored: list[ScoredObservations]
    rates: list[RateCells]
    coverage: list[Coverage]
    estimated: list[EstimatedRate]

    def add(self, judged: _Judged, missing: Missing, by_agent: bool) -> None:
        """Add every group of one judge."""
        judge, predictions = judged.name, judged.predictions
        expected = judged.expected()
        observed = {
            label: predictions.observe(label, missing) for label in predictions.predicted_labels()
        }
        listed = groups(predictions.reference, expected)
        self.estimated += estimated_rates(judge, predictions, listed, missing)
        for group in listed:
            detailed = by_agent or group.agent == ALL_AGENTS
            members = group.members(predictions.reference)
            if detailed:
                self.coverage.append(
                    coverage_of(
                        judge, group, predictions, expected, members, training=judged.trained
                    )
                )
            if not members[predictions.index].any():
                continue
            cut = {label: each.where(members[each.index]) for label, each in observed.items()}
            self.rates.append(RateCells(judge, group, cut["success"]))
            for label in observed if detailed else ():
                cell = _Cell(judge, group, label, unsure(predictions, label, members))
                self.scored += _score_label(cell, cut[label], missing)


class _Cell(NamedTuple):
    """Identifies a score; ``unsure`` labels of the group are left out of it."""

    judge: str
    group: TrajectoryGroup
    label: Label
    unsure: int


def _score_label(
    cell: _Cell, observations: Observations, missing: Missing
) -> list[ScoredObservations]:
    """Score the judge and, for success, the baseline on the trajectories it was scored on."""
    failed = int((~observations.answered).sum())
    if missing == "exclude":
        observations = observations.where(observations.answered)
    score = _score(cell, observations, missing).model_copy(update={"missing": failed})
    scored = [ScoredObservations(score, observations)]
    if cell.label == "success" and cell.judge != RULE_BASED:
        rewarded = ~np.isnan(observations.reward)
        rule = observations.where(rewarded).as_rule_based()
        more = {"baseline": True, "without_reward": int((~rewarded).sum())}
        score = _score(cell, rule, missing).model_copy(update=more)
        scored.append(ScoredObservations(score, rule))
    return scored


MORE_RATES = ("kappa", "mcc", "balanced_accuracy", "fpr", "fnr", "over_accept_share")
"""Beside those of VerdictRates, in every protocol."""


def _score(cell: _Cell, observations: Observations, missing: Missing) -> Score:
    """Compute the metrics of one label; intervals come later."""
    protocol = protocol_counts(observations.labels, observations.predictions)
    counts = protocol.counts
    shown = protocol_rates(protocol) if missing == "agentrewardbench" else VerdictRates.of(counts)
    more = dict(zip(MORE_RATES, rates(MORE_RATES, counts), strict=True))
    return Score(
        judge=cell.judge,
        benchmark=cell.group.benchmark,
        agent=cell.group.agent,
        label=cell.label,
        n=protocol.n,
        positives=counts.positives + protocol.missing_positive,
        counts=counts,
        unsure=cell.unsure,
        **{name: getattr(shown, name) for name in VerdictRates._fields},
        **more,
    )
