"""Intervals of scores: against numpy by brute force, and where there is nothing to resample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    cohen_kappa_score,
    f1_score,
    matthews_corrcoef,
    roc_auc_score,
)

from annotations import Annotation
from eval.notes import notes
from eval.scores import RATES, SCORE_RATES, Score
from eval.scoring import score
from eval.stats.binomial import wilson
from eval.uncertainty import Bootstrap
from judges.model import Judgment, Status
from tests.eval.cases import failed, key, label, said
from trajectories.model import TrajectoryKey

RNG = np.random.default_rng(7)
N = 200
TRUTH = RNG.random(N) < 0.4
SCORE = np.clip(np.round(0.3 + 0.4 * TRUTH + RNG.normal(0, 0.25, N), 1), 0, 1)


def world() -> tuple[list[Judgment], dict[TrajectoryKey, Annotation]]:
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
        labels[place] = Annotation(
            key=place, raw_task_id=place.task_id, annotator="A", success=bool(TRUTH[i])
        )
    return judgments, labels


def overall(resamples: int = 2000) -> Score:
    judgments, labels = world()
    found = score(judgments, labels, rewards={}, bootstrap=Bootstrap(resamples))
    return next(s for s in found.scores if s.benchmark == "overall" and not s.baseline)


def test_every_metric_is_scikit_learns_and_has_an_interval_around_it() -> None:
    found, verdict = overall(), SCORE > 0.5
    assert found.f1 == pytest.approx(f1_score(TRUTH, verdict))
    assert found.kappa == pytest.approx(cohen_kappa_score(TRUTH, verdict))
    assert found.mcc == pytest.approx(matthews_corrcoef(TRUTH, verdict))
    assert found.roc_auc == pytest.approx(roc_auc_score(TRUTH, SCORE))
    assert found.average_precision == pytest.approx(average_precision_score(TRUTH, SCORE))
    assert found.brier == pytest.approx(np.mean((SCORE - TRUTH) ** 2))
    assert (found.scored, found.tasks) == (N, N // 2)
    assert set(found.intervals) == {*RATES, *SCORE_RATES}
    for name, (low, high) in found.intervals.items():
        assert low < getattr(found, name) < high


def test_the_bootstrap_draws_tasks_not_trajectories() -> None:
    """Against a loop that draws tasks: ends agree within the noise of 2,000 resamples."""
    verdict, rng = SCORE > 0.5, np.random.default_rng(1)
    replicates = []
    for _ in range(2000):
        tasks = rng.integers(0, N // 2, N // 2)
        drawn = np.concatenate([2 * tasks, 2 * tasks + 1])
        replicates.append(f1_score(TRUTH[drawn], verdict[drawn]))
    found = overall().intervals["f1"]
    assert found == pytest.approx(np.quantile(replicates, [0.025, 0.975]), abs=0.015)


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


def test_without_resamples_only_wilsons_intervals_are_left_and_that_is_said() -> None:
    found = overall(resamples=0)
    assert set(found.intervals) == {"precision", "recall", "accuracy", "npv", "tnr"}
    assert found.roc_auc is not None
    judgments, labels = world()
    scores = score(judgments, labels, rewards={}, bootstrap=Bootstrap(0))
    assert any(note.startswith("no resamples") for note in notes(scores))


@pytest.mark.parametrize(
    ("judgments", "defined"),
    [
        ([said(1, True)], {"precision", "recall", "accuracy"}),  # one task
        ([said(3, False), said(4, False)], {"npv", "tnr", "accuracy"}),  # no positives
        ([failed(i, Status.REFUSED) for i in range(1, 5)], {"recall", "npv", "tnr", "accuracy"}),
    ],
    ids=["one task", "no positives", "all failed"],
)
def test_what_is_undefined_has_no_interval(judgments: list[Judgment], defined: set[str]) -> None:
    labels = {key(i): label(i, i < 3) for i in range(1, 5)}
    scores = score(judgments, labels, rewards={})
    found = scores.scores[0]
    assert defined <= set(found.intervals)
    for name in (*RATES, *SCORE_RATES):
        if getattr(found, name) is None:
            assert name not in found.intervals
    if len(judgments) == 1:
        assert any("fewer than two tasks" in note for note in notes(scores))


def test_a_bootstrap_that_never_moves_claims_nothing_it_does_not_know() -> None:
    """Right on all of 12 tasks: every resample has F1, κ and MCC of 1."""
    labels = {key(i): label(i, i < 6) for i in range(12)}
    scores = score([said(i, i < 6) for i in range(12)], labels, rewards={})
    found = scores.scores[0]
    assert (found.f1, found.kappa, found.mcc) == (1.0, 1.0, 1.0)
    assert found.degenerate == ("f1", "kappa", "mcc")
    share = wilson(6, 6)
    low = float(share.low)
    assert found.intervals["f1"] == pytest.approx((2 * low / (1 + low), 1.0))
    assert "kappa" not in found.intervals
    told = "\n".join(notes(scores))
    assert "every resample of judge has the same F1, κ, MCC (degenerate)" in told
    assert "F1's limits are Wilson's over tasks" in told


def test_a_judge_that_is_never_right_has_an_upper_limit_of_f1() -> None:
    labels = {key(i): label(i, i < 5) for i in range(10)}
    found = score([said(i, i >= 5) for i in range(10)], labels, rewards={}).scores[0]
    low, high = found.intervals["f1"]
    assert (found.f1, low) == (0.0, 0.0)
    assert 0.2 < high < 0.6
    assert "f1" in found.degenerate


def test_an_interval_that_moves_is_not_called_degenerate() -> None:
    assert overall().degenerate == ()


def test_few_tasks_are_warned_of() -> None:
    labels = {key(i): label(i, i < 3) for i in range(9)}
    scores = score([said(i, i < 4) for i in range(9)], labels, rewards={})
    assert "WebArena: 9 tasks only" in "\n".join(notes(scores))
