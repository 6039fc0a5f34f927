"""Scores: what counts, what is left out, and every rate against scikit-learn."""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import failed, key, label, said
from trajudge.annotations import Label, open_annotations, primary_labels
from trajudge.eval.reporting.results import COLUMNS, results_csv, results_json
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.metrics import METRICS, VERDICT_METRICS
from trajudge.eval.scoring.notes import flip_rate, mixed_versions, reward_notes
from trajudge.eval.scoring.observations import (
    Predictions,
    ReferenceLabels,
    one_per_trajectory,
)
from trajudge.eval.scoring.records import OVERALL, Counts, LabelName, Missing, Score, ScoreReport
from trajudge.eval.store.published import read_published
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import wilson

LABELS = {
    a.key: a
    for a in (label(1, True), label(2, True), label(3, False), label(4, False), label(5, None))
}
ANSWERS = [said(1, True), said(2, False), said(3, True), said(4, False), said(5, True)]


def score_of(
    scores: ScoreReport,
    benchmark: str = OVERALL,
    what: LabelName = "success",
    baseline: bool = False,
) -> Score:
    (found,) = [
        s
        for s in scores.scores
        if (s.benchmark, s.label, s.baseline) == (benchmark, what, baseline)
    ]
    return found


def test_verdicts_are_counted_against_labels_and_unsure_is_left_out() -> None:
    found = score_of(score(ANSWERS, LABELS, rewards={}))
    assert found.counts == Counts(tp=1, fp=1, fn=1, tn=1)
    assert (found.n, found.positives, found.unsure) == (4, 2, 1)
    assert (found.precision, found.recall, found.f1, found.kappa) == (0.5, 0.5, 0.5, 0.0)
    low, high = found.intervals["precision"]
    assert (low, high) == pytest.approx((1 - high, 1 - low))
    limits = wilson(1, 2)
    assert low < float(limits.low)  # Student's quantile at one degree of freedom


def test_a_trajectory_without_annotation_is_counted_as_such() -> None:
    scores = score([*ANSWERS, said(9, True)], LABELS, rewards={})
    assert score_of(scores).n == 4
    assert scores.coverage[-1].unlabelled == 1


FAILED = [
    said(1, True),
    failed(2, Status.PROVIDER_ERROR),
    failed(3, Status.REFUSED),
    failed(4, Status.UNPARSABLE),
]


@pytest.mark.parametrize(
    ("missing", "counts", "n", "positives", "recall"),
    [
        ("negative", Counts(tp=1, fp=0, fn=1, tn=2), 4, 2, 0.5),
        ("exclude", Counts(tp=1, fp=0, fn=0, tn=0), 1, 1, 1.0),
        ("agentrewardbench", Counts(tp=1, fp=0, fn=0, tn=1), 4, 2, 1.0),
    ],
)
def test_what_a_failed_judgment_counts_as_is_the_stated_policy(
    missing: Missing, counts: Counts, n: int, positives: int, recall: float
) -> None:
    found = score_of(score(FAILED, LABELS, rewards={}, missing=missing))
    assert (found.counts, found.n, found.positives) == (counts, n, positives)
    assert (found.recall, found.missing) == (recall, 3)


def test_nothing_accepted_is_no_precision_but_zero_in_the_papers_arithmetic() -> None:
    judgments = [said(1, False)]
    assert score_of(score(judgments, LABELS, rewards={})).precision is None
    paper = score_of(score(judgments, LABELS, rewards={}, missing="agentrewardbench"))
    assert (paper.precision, paper.intervals.get("precision")) == (0.0, None)


def test_the_rule_based_baseline_stands_beside_on_the_same_trajectories() -> None:
    rewards = {key(1): 1.0, key(2): 0.5, key(3): 0.51, key(4): None, key(8): 1.0}
    scores = score(ANSWERS, LABELS, rewards=rewards)
    baseline = score_of(scores, baseline=True)
    assert baseline.counts == Counts(tp=1, fp=1, fn=1, tn=0)
    assert baseline.without_reward == 1
    assert scores.coverage[-1].unjudged == 1
    excluded = score(FAILED, LABELS, rewards=rewards, missing="exclude")
    assert score_of(excluded, baseline=True).n == 1


def test_the_rule_based_judge_has_no_baseline_beside_itself() -> None:
    scores = score([said(1, True, judge="rule-based")], LABELS, rewards={})
    assert not [s for s in scores.scores if s.baseline]


def test_side_effect_and_repetition_are_scored_where_the_judge_was_asked() -> None:
    labels = {
        a.key: a for a in (label(1, True, side_effect=True), label(2, True, side_effect=False))
    }
    judgments = [said(1, True, side_effect=True), said(2, True, side_effect=True)]
    scores = score(judgments, labels, rewards={})
    assert score_of(scores, what="side_effect").counts == Counts(tp=1, fp=1, fn=0, tn=0)
    assert {s.label for s in scores.scores} == {"success", "side_effect"}


def test_benchmarks_come_in_the_papers_order_and_workarena_plus_plus_is_told_apart() -> None:
    tasks = [("x-l2", "workarena"), ("x", "workarena"), (1, "zoo"), (1, "webarena")]
    judgments = [said(task, True, benchmark=benchmark) for task, benchmark in tasks]
    scores = score(judgments, {}, rewards={})
    names = [c.benchmark for c in scores.coverage]
    assert names == ["webarena", "workarena", "workarena++", "zoo", OVERALL]


def test_judges_are_told_apart_and_sorted() -> None:
    scores = score([said(1, True, judge="b"), said(1, False, judge="a")], LABELS, rewards={})
    assert [s.judge for s in scores.spending] == ["a", "b"]
    accepted = {s.judge: s.counts.tp for s in scores.scores if not s.baseline}
    assert accepted == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("votes", "expected"),
    [([True, True, False], True), ([True, False], False), ([True, None], True), ([None], None)],
)
def test_several_samples_are_one_observation(
    votes: list[bool | None], expected: bool | None
) -> None:
    samples = [
        said(1, vote, sample=index) if vote is not None else failed(1, Status.REFUSED, sample=index)
        for index, vote in enumerate(votes)
    ]
    (merged,) = one_per_trajectory(samples)
    assert merged.success is expected


def test_the_reasoning_of_several_samples_is_one_of_the_majority() -> None:
    samples = [
        said(1, True, reasoning="bought", process=True),
        said(1, False, sample=1, reasoning="sold out", process=True),
        said(1, False, sample=2, reasoning="lost", process=False, failure_step=3),
        said(1, False, sample=3, reasoning="gone", process=False, failure_step=4),
        said(1, False, sample=4, reasoning="shut", process=False, failure_step=5),
    ]
    (merged,) = one_per_trajectory(samples)
    assert (merged.success, merged.process) == (False, False)
    assert (merged.reasoning, merged.failure_step) == ("lost", 3)
    (sound,) = one_per_trajectory(samples[:4][::-1] + samples[:2])
    assert (sound.process, sound.reasoning, sound.failure_step) == (True, "sold out", None)


def test_an_empty_run_has_no_scores() -> None:
    scores = score([], LABELS, rewards={})
    assert (scores.scores, scores.coverage) == ((), ())


STATUSES = st.sampled_from([*Status])
CASES = st.lists(
    st.tuples(st.integers(0, 12), st.booleans(), STATUSES), unique_by=lambda case: case[0]
)


@given(CASES, st.randoms(use_true_random=False))
def test_results_do_not_depend_on_the_order_of_judgments(
    cases: list[tuple[int, bool, Status]], random: object
) -> None:
    labels: dict[object, Label] = {key(n): label(n, n % 2 == 0) for n in range(12)}
    judgments: list[Judgment] = [
        said(task, vote) if status is Status.OK else failed(task, status)
        for task, vote, status in cases
    ]
    shuffled = list(judgments)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = score(judgments, labels, rewards={})  # type: ignore[arg-type]
    second = score(shuffled, labels, rewards={})  # type: ignore[arg-type]
    assert results_json(first) == results_json(second)
    assert results_csv(first) == results_csv(second)
    assert ScoreReport.model_validate_json(results_json(first)) == first
    for found in first.scores:
        assert found.counts.n == found.n


def test_results_csv_has_a_line_a_score() -> None:
    scores = score(ANSWERS, LABELS, rewards={key(1): 1.0})
    rows = list(csv.DictReader(StringIO(results_csv(scores))))
    assert len(rows) == len(scores.scores)
    assert tuple(rows[0]) == COLUMNS
    assert (rows[0]["precision"], rows[0]["tp"], rows[0]["evaluator"]) == ("0.5", "1", "judge")
    assert rows[1]["evaluator"] == "rule-based"


@pytest.mark.real_data
def test_the_rule_based_row_on_the_stored_test_trajectories(arb: Path) -> None:
    labels = {
        k: v
        for k, v in primary_labels(open_annotations(f"agentrewardbench:{arb}")).items()
        if v.split == "test"
    }
    rewards = {p.key: p.official_reward for p in read_published(arb)}
    judgments = [
        Judgment(key=k, judge="rule-based", status=Status.OK, success=(reward or 0) > 0.5)
        for k, reward in rewards.items()
    ]
    found = score_of(score(judgments, labels, rewards=rewards))
    assert found.counts == Counts(tp=132, fp=27, fn=72, tn=550)
    assert f"{100 * (found.precision or 0):.1f} {100 * (found.recall or 0):.1f}" == "83.0 64.7"


PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80)


def rate(name: str, counts: Counts) -> float | None:
    """The metric of the table; None where a denominator is zero."""
    cells = np.array([counts.tp, counts.fp, counts.fn, counts.tn, 0, 0], dtype=float)
    value = float(METRICS[name].value(cells))
    return None if np.isnan(value) else value


def agrees(ours: float | None, theirs: Callable[[], Any]) -> None:
    if ours is not None:
        assert ours == pytest.approx(theirs())


@given(PAIRS)
def test_every_rate_is_scikit_learns(pairs: list[tuple[bool, bool]]) -> None:
    from sklearn import metrics as sk

    truth, said = (np.array(column) for column in zip(*pairs, strict=True))
    tn, fp, fn, tp = sk.confusion_matrix(truth, said, labels=[False, True]).ravel()
    counts = Counts(tp=int(tp), fp=int(fp), fn=int(fn), tn=int(tn))
    assert (counts.n, counts.positives, counts.accepted) == (len(pairs), sum(truth), sum(said))
    agrees(rate("precision", counts), lambda: sk.precision_score(truth, said))
    agrees(rate("recall", counts), lambda: sk.recall_score(truth, said))
    agrees(rate("f1", counts), lambda: sk.f1_score(truth, said))
    agrees(rate("accuracy", counts), lambda: sk.accuracy_score(truth, said))
    agrees(rate("npv", counts), lambda: sk.precision_score(truth, said, pos_label=False))
    agrees(rate("tnr", counts), lambda: sk.recall_score(truth, said, pos_label=False))
    agrees(rate("kappa", counts), lambda: sk.cohen_kappa_score(truth, said))
    agrees(rate("mcc", counts), lambda: sk.matthews_corrcoef(truth, said))
    agrees(rate("balanced_accuracy", counts), lambda: sk.balanced_accuracy_score(truth, said))
    agrees(rate("fpr", counts), lambda: 1 - sk.recall_score(truth, said, pos_label=False))
    agrees(rate("fnr", counts), lambda: 1 - sk.recall_score(truth, said))
    agrees(rate("over_accept_share", counts), lambda: np.mean(said[said != truth]))


def test_a_rate_without_a_denominator_is_not_a_number() -> None:
    nothing_accepted = Counts(tp=0, fp=0, fn=1, tn=1)
    assert rate("precision", nothing_accepted) is None
    assert rate("recall", nothing_accepted) == 0
    assert all(
        rate(metric.name, Counts(tp=0, fp=0, fn=0, tn=0)) is None for metric in VERDICT_METRICS
    )


def test_kappa_of_the_published_judges() -> None:
    assert round(rate("kappa", Counts(tp=171, fp=55, fn=124, tn=756)) or 0, 3) == 0.553
    assert round(rate("kappa", Counts(tp=210, fp=75, fn=85, tn=736)) or 0, 3) == 0.626


@pytest.mark.parametrize(("successes", "has_interval"), [(9, False), (10, True), (11, False)])
def test_kappa_has_an_interval_where_each_class_has_ten(successes: int, has_interval: bool) -> None:
    labels = {key(n): label(n, n < successes) for n in range(20)}
    scores = score([said(n, n % 3 == 0) for n in range(20)], labels, rewards={})
    found = score_of(scores)
    for metric in ("kappa", "mcc"):
        assert (metric in found.intervals) is has_interval
        assert (metric in found.no_interval) is not has_interval


def test_samples_that_differ_are_counted_among_those_with_two_verdicts() -> None:
    told: list[list[bool | None]] = [
        [True, False, True],
        [True, True],
        [False, False],
        [True],
        [True, None],
        [None, None],
    ]
    judgments = [
        said(n, verdict, sample=sample)
        for n, verdicts in enumerate(told)
        for sample, verdict in enumerate(verdicts)
    ]
    table = JudgmentTable.of(judgments)
    reference = ReferenceLabels.of(table.keys, {}, {})
    assert flip_rate(Predictions.of("judge", table, reference), table) == (1, 3)


def test_rewards_from_zero_to_one_are_on_the_scale_of_the_rule() -> None:
    assert reward_notes(np.array([0, 0.5, 1, np.nan])) == []
    (note,) = reward_notes(np.array([0, -0.5, 1.5, np.nan]))
    assert "2 of 3 official rewards not between 0 and 1, such as -0.5: above" in note


def test_a_judge_in_two_versions_is_warned_of() -> None:
    (warning,) = mixed_versions({"a": {"aer": 1}, "b": {"aer": 2, "rubric": 1}, "c": {"aer": 1}})
    assert "aer is compared in several versions (version 1 in a, c; version 2 in b)" in warning
