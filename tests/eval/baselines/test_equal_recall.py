"""A judge beside a baseline at equal recall, against draws of what the baseline would accept."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import key, label, observe, said
from trajudge.eval.baselines import accepted_shares, at_equal_recall
from trajudge.eval.scoring.records import EqualRecall
from trajudge.eval.store.table import KeyColumns


def accepted_by_hand(
    scores: list[float], labels: list[bool], hits: int, rng: np.random.Generator
) -> int:
    """How many are accepted, the highest score first and equal ones in a random order, until
    ``hits`` successes are."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], rng.random()))
    seen = 0
    for count, place in enumerate(order, start=1):
        seen += labels[place]
        if seen == hits:
            return count
    raise AssertionError


@pytest.mark.parametrize("seed", range(5))
def test_without_equal_scores_the_baseline_accepts_down_to_the_same_recall(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.random(60), rng.random(60) < 0.4
    for hits in (1, 5, int(labels.sum())):
        shares = accepted_shares(scores, labels, hits)
        assert (shares * labels).sum() == pytest.approx(hits)
        assert shares.sum() == accepted_by_hand(scores.tolist(), labels.tolist(), hits, rng)


def test_a_share_of_equal_scores_keeps_their_share_of_successes() -> None:
    scores = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    labels = np.array([True, True, False, False, True, False])
    assert accepted_shares(scores, labels, 1).tolist() == [0.5, 0.5, 0.5, 0.5, 0, 0]
    assert accepted_shares(scores, labels, 3).tolist() == [1, 1, 1, 1, 1, 1]


def compared(verdicts: list[bool], truth: list[bool], scores: list[float]) -> EqualRecall | None:
    labels = {key(i): label(i, good) for i, good in enumerate(truth)}
    judgments = [said(i, verdict) for i, verdict in enumerate(verdicts)]
    observed = observe(judgments, labels, "negative")
    ranks = np.full(len(truth), np.nan)
    ranks[observed.reference.places(KeyColumns.of(map(key, range(len(truth)))))] = scores
    return at_equal_recall("judge", observed, "tfidf-answer", ranks)


def test_the_difference_is_of_precisions_at_the_judges_recall() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(80) < 0.5).tolist()
    verdicts = [good if rng.random() < 0.9 else not good for good in truth]
    scores = rng.random(80).tolist()
    found = compared(verdicts, truth, scores)
    assert found is not None
    hits = sum(v and t for v, t in zip(verdicts, truth, strict=True))
    accepted = accepted_by_hand(scores, truth, hits, rng)
    assert found.recall == pytest.approx(hits / sum(truth))
    assert found.precision == pytest.approx(hits / sum(verdicts))
    assert found.baseline_precision == pytest.approx(hits / accepted)
    assert found.difference == pytest.approx(hits / sum(verdicts) - hits / accepted)
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.difference < found.high


def test_a_judge_that_accepts_no_success_is_not_compared() -> None:
    assert compared([False, True], [True, False], [0.2, 0.4]) is None
