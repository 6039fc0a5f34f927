"""Intervals of scores: against numpy by brute force, where there are none, and how they cover."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import failed, key, label, said
from tests.eval.reference import confusion_columns, confusion_statistic
from tests.worlds.cluster_designs import (
    Design,
    score_designs,
    synthetic_designs,
)
from tests.worlds.comparisons import (
    coverage_of_differences,
    pair_designs,
)
from tests.worlds.coverage import Coverage, coverage_of_scores, coverage_of_verdicts
from trajudge.annotations import Label
from trajudge.eval.reporting.sentences import notes
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.metrics import METRICS
from trajudge.eval.scoring.records import Score
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import cluster_bootstrap, sum_clusters, wilson
from trajudge.trajectories.model import TrajectoryKey

RNG = np.random.default_rng(7)
N = 200
TRUTH = RNG.random(N) < 0.4
SCORE = np.clip(np.round(0.3 + 0.4 * TRUTH + RNG.normal(0, 0.25, N), 1), 0, 1)


def world() -> tuple[list[Judgment], dict[TrajectoryKey, Label]]:
    """Two agents on each of 100 tasks, one judge with scores."""
    judgments, labels = [], {}
    for i in range(N):
        place = key(i // 2, agent="ab"[i % 2])
        judgments.append(
            Judgment(
                key=place,
                judge="judge",
                status=Status.OK,
                success=bool(SCORE[i] > 0.5),
                score=float(SCORE[i]),
            )
        )
        labels[place] = Label(
            key=place, raw_task_id=place.task_id, annotator="A", success=bool(TRUTH[i])
        )
    return judgments, labels


def overall() -> Score:
    judgments, labels = world()
    found = score(judgments, labels, rewards={})
    return next(s for s in found.scores if s.benchmark == "overall" and not s.baseline)


def test_every_metric_is_scikit_learns_and_has_an_interval_around_it() -> None:
    from sklearn.metrics import (
        average_precision_score,
        balanced_accuracy_score,
        cohen_kappa_score,
        f1_score,
        matthews_corrcoef,
        recall_score,
        roc_auc_score,
    )

    found, verdict = overall(), SCORE > 0.5
    assert found.f1 == pytest.approx(f1_score(TRUTH, verdict))
    assert found.kappa == pytest.approx(cohen_kappa_score(TRUTH, verdict))
    assert found.mcc == pytest.approx(matthews_corrcoef(TRUTH, verdict))
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(TRUTH, verdict))
    assert found.fpr == pytest.approx(1 - recall_score(~TRUTH, ~verdict))
    assert found.fnr == pytest.approx(1 - recall_score(TRUTH, verdict))
    assert found.over_accept_share == pytest.approx(np.mean(verdict[verdict != TRUTH]))
    assert found.roc_auc == pytest.approx(roc_auc_score(TRUTH, SCORE))
    assert found.average_precision == pytest.approx(average_precision_score(TRUTH, SCORE))
    assert found.brier == pytest.approx(np.mean((SCORE - TRUTH) ** 2))
    assert (found.scored, found.tasks) == (N, N // 2)
    assert set(found.intervals) == {*METRICS} - {"calibration_error"}
    assert "biased upwards" in found.no_interval["calibration_error"]
    for name, (low, high) in found.intervals.items():
        assert low < getattr(found, name) < high


def test_tasks_are_the_units_not_trajectories() -> None:
    """Where tasks are many a bootstrap that draws them agrees; its percentiles lean a little."""
    tasks = sum_clusters(confusion_columns(SCORE[:, None] > 0.5, TRUTH), np.arange(N) // 2)
    names = ("f1", "kappa", "mcc")
    drawn = cluster_bootstrap(tasks, confusion_statistic(*names), np.random.default_rng(1))
    found = overall().intervals
    for name, low, high in zip(names, drawn.low, drawn.high, strict=True):
        assert found[name] == pytest.approx((low, high), abs=0.03)


def test_the_errors_have_the_mirrored_intervals_of_the_rates() -> None:
    """An FPR is what is left of the TNR; balanced accuracy agrees with a bootstrap over tasks that
    is written here."""
    found = overall().intervals
    for rate, rest in (("fpr", "tnr"), ("fnr", "recall")):
        low, high = found[rest]
        assert found[rate] == pytest.approx((1 - high, 1 - low))
    rng, task, verdict = np.random.default_rng(2), np.arange(N) // 2, SCORE > 0.5
    drawn: dict[str, list[float]] = {"balanced_accuracy": [], "over_accept_share": []}
    for _ in range(2000):
        weight = np.bincount(rng.integers(0, N // 2, N // 2), minlength=N // 2)[task]
        tp, fn = (weight * (TRUTH & (verdict == v)) for v in (True, False))
        fp, tn = (weight * (~TRUTH & (verdict == v)) for v in (True, False))
        sums = [float(cell.sum()) for cell in (tp, fp, fn, tn)]
        balanced = sums[0] / (sums[0] + sums[2]) + sums[3] / (sums[1] + sums[3])
        drawn["balanced_accuracy"].append(balanced / 2)
        drawn["over_accept_share"].append(sums[1] / (sums[1] + sums[2]))
    for name, values in drawn.items():
        ends = np.quantile(values, (0.025, 0.975))
        assert found[name] == pytest.approx(tuple(ends), abs=0.03)


def test_the_design_effect_stands_beside_every_rate() -> None:
    effects = overall().design_effects
    assert set(effects) == {metric.name for metric in METRICS.values() if metric.trials}
    assert all(1 <= effect <= 2 for effect in effects.values())


def test_agents_are_scored_apart_and_all_together() -> None:
    judgments, labels = world()
    found = score(judgments, labels, rewards={}, by_agent=True)
    judged = [s for s in found.scores if s.benchmark == "webarena" and not s.baseline]
    assert [(s.agent, s.n) for s in judged] == [("all", 200), ("a", 100), ("b", 100)]
    assert judged[1].counts.tp + judged[2].counts.tp == judged[0].counts.tp
    assert [c.agent for c in found.coverage if c.benchmark == "webarena"] == ["all", "a", "b"]
    rates = {r.agent: r for r in found.success_rates if r.benchmark == "webarena"}
    assert rates["a"].expert == pytest.approx(TRUTH[::2].mean())
    assert rates["a"].rule_based is None


def test_a_log_that_punishes_failures_has_its_share_of_successes() -> None:
    judgments = [said(task, True) for task in range(4)]
    labels = {key(task): label(task, task < 2) for task in range(4)}
    rewards = {key(task): 1.0 if task < 2 else -1.0 for task in range(4)}
    found = score(judgments, labels, rewards=rewards)
    assert {(rate.expert, rate.rule_based) for rate in found.success_rates} == {(0.5, 0.5)}


def test_a_failed_judgment_has_the_score_of_a_rejection_or_none() -> None:
    labels = {key(i): label(i, i < 2) for i in range(4)}
    judgments = [
        said(0, True, score=0.9),
        failed(1, Status.REFUSED),
        said(2, True, score=0.8),
        said(3, False, score=0.1),
    ]
    negative = score(judgments, labels, rewards={}).scores[0]
    assert (negative.scored, negative.roc_auc) == (4, 0.5)
    exclude = score(judgments, labels, rewards={}, missing="exclude").scores[0]
    assert (exclude.scored, exclude.roc_auc) == (3, 1.0)


def test_judges_that_are_not_compared_have_the_same_scores() -> None:
    judgments, labels = world()
    scores = score(judgments, labels, rewards={}, compared=None)
    assert overall() in scores.scores
    assert "judges are not compared" in notes(scores)


@pytest.mark.parametrize(
    ("judgments", "defined"),
    [
        ([said(1, True)], set()),  # one task
        ([said(3, False), said(4, False)], {"npv", "tnr", "accuracy"}),  # no positives
        ([failed(i, Status.REFUSED) for i in range(1, 5)], set()),
    ],
    ids=["one task", "no positives", "all failed"],
)
def test_what_is_undefined_has_no_interval(judgments: list[Judgment], defined: set[str]) -> None:
    labels = {key(i): label(i, i < 3) for i in range(1, 5)}
    scores = score(judgments, labels, rewards={})
    found = scores.scores[0]
    assert defined <= set(found.intervals)
    assert not set(found.intervals) & set(found.no_interval)
    for name in METRICS:
        if getattr(found, name) is None:
            assert name not in found.intervals
    if len(judgments) == 1:
        assert any("one task only" in note for note in notes(scores))


def test_perfect_agreement_claims_nothing_it_does_not_know() -> None:
    """Right on all of 24 tasks: the rates have a lower limit, κ and MCC nothing to go by."""
    labels = {key(i): label(i, i < 12) for i in range(24)}
    scores = score([said(i, i < 12) for i in range(24)], labels, rewards={})
    found = scores.scores[0]
    assert (found.f1, found.kappa, found.mcc) == (1.0, 1.0, 1.0)
    assert found.degenerate == ("kappa", "mcc")
    low, high = found.intervals["precision"]
    assert 0.6 < low < float(wilson(12, 12).low)
    assert high == 1
    assert found.intervals["f1"] == pytest.approx((2 * low / (1 + low), 1.0))
    told = "\n".join(notes(scores))
    assert "no interval of κ, MCC for judge: judge and expert agree" in told


def test_a_judge_that_is_never_right_has_an_upper_limit_of_f1() -> None:
    labels = {key(i): label(i, i < 5) for i in range(10)}
    found = score([said(i, i >= 5) for i in range(10)], labels, rewards={}).scores[0]
    low, high = found.intervals["f1"]
    assert (found.f1, low) == (0.0, 0.0)
    assert 0.2 < high < 0.6


def test_an_interval_that_moves_is_not_called_degenerate() -> None:
    assert overall().degenerate == ()


def test_few_of_a_class_are_told_for_kappa_and_mcc() -> None:
    labels = {key(i): label(i, i < 3) for i in range(30)}
    scores = score([said(i, i < 4) for i in range(30)], labels, rewards={})
    assert "kappa" not in scores.scores[0].intervals
    assert "f1" in scores.scores[0].intervals
    assert "no interval of κ, MCC for judge: fewer than 10" in "\n".join(notes(scores))


REPLICATES = 250


def measured(designs: list[Design]) -> list[Coverage]:
    return [
        cell
        for number, design in enumerate(designs)
        if design.positives >= 20
        for cell in coverage_of_verdicts(design, REPLICATES, np.random.default_rng(number))
    ]


def held(cells: list[Coverage]) -> None:
    """Mean at least 94 %, each at least 91 %, but for Monte Carlo error."""
    for metric in {cell.metric for cell in cells}:
        shares = [cell.share for cell in cells if cell.metric == metric]
        assert np.mean(shares) >= 0.94 - 3 * 0.014 / len(shares) ** 0.5, metric
    assert [cell for cell in cells if cell.n > 50 and cell.share < 0.91 - 4 * cell.error] == []


def test_intervals_cover_where_tasks_are_beta_binomial() -> None:
    cells = measured([*synthetic_designs(every=59)])
    raw = [cell.share for cell in cells if cell.metric == "precision, raw Wilson"]
    assert min(raw) < 0.85  # trajectories of one task are not independent
    held([cell for cell in cells if "raw" not in cell.metric])


def test_intervals_of_scores_cover() -> None:
    designs = [design for design in score_designs(every=13) if design.tasks <= 100]
    held([c for d in designs for c in coverage_of_scores(d, REPLICATES, np.random.default_rng(0))])


def test_differences_between_judges_cover() -> None:
    designs = [design for design in pair_designs(every=41) if design.positives >= 20]
    rng = np.random.default_rng(5)
    found = [each for d in designs for each in coverage_of_differences(d, REPLICATES, rng)]
    shares = [each.share for each in found]
    assert np.mean(shares) >= 0.94 - 3 * 0.014 / len(shares) ** 0.5
    assert min(shares) >= 0.91 - 4 * (0.91 * 0.09 / REPLICATES) ** 0.5
