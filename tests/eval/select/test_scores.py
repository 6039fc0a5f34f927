"""Scores of single judges, panels and cascades, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import call, failed, key, said
from trajudge.eval.select.scores import (
    Rule,
    accepts,
    default_thresholds,
    judge_scores,
    judgments_hash,
    measured_prices,
    price,
    rule_scores,
)
from trajudge.judges.model import Status
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

KEYS = [key(n) for n in range(4)]


def scores(**by_judge: list[float | None]) -> dict[str, dict[TrajectoryKey, float]]:
    return {
        judge: {k: v for k, v in zip(KEYS, values, strict=True) if v is not None}
        for judge, values in by_judge.items()
    }


def test_a_score_goes_before_a_verdict_and_a_failure_accepts_nothing() -> None:
    found = judge_scores(
        [said(0, True, score=0.7), said(1, True), said(2, False), failed(3, Status.REFUSED)]
    )
    assert [found["judge"][k] for k in KEYS] == [0.7, 1, 0, 0]
    assert judge_scores([said(0, True, score=0.7)], "verdict")["judge"][KEYS[0]] == 1


def test_several_samples_are_their_mean_over_those_that_answered() -> None:
    samples = [
        said(0, True, sample=0),
        said(0, True, sample=1),
        said(0, False, sample=2),
        failed(0, Status.UNPARSABLE, sample=3),
    ]
    assert judge_scores(samples)["judge"][KEYS[0]] == pytest.approx(2 / 3)


def test_a_panel_is_the_mean_and_needs_everybody() -> None:
    rule = Rule(kind="panel", judges=("a", "b"))
    found = rule_scores(rule, scores(a=[1, 1, 0, 1], b=[1, 0, 0, None]), KEYS)
    np.testing.assert_equal(found, [1, 0.5, 0, np.nan])
    assert accepts(found, 0.5).tolist() == [True, True, False, False]


def test_thirds_reach_a_rounded_threshold() -> None:
    assert accepts(np.array([1 / 3 + 1 / 3]), 2 / 3).all()


def test_a_cascade_asks_the_last_only_where_the_first_accepts() -> None:
    rule = Rule(kind="cascade", judges=("a", "b"))
    found = rule_scores(rule, scores(a=[1, 1, 0, 0], b=[0.9, 0.2, None, 1]), KEYS)
    np.testing.assert_equal(found, [0.9, 0.2, 0, 0])


def test_a_cascade_with_gaps_is_kept_to_what_everybody_judged() -> None:
    """Trajectories that the first rejects are all known; taking them without those that got
    through and were never judged would make a biased sample."""
    rule = Rule(kind="cascade", judges=("a", "b"))
    found = rule_scores(rule, scores(a=[1, 1, 0, 0], b=[0.9, None, None, 1]), KEYS)
    np.testing.assert_equal(found, [0.9, np.nan, np.nan, 0])


def test_a_judge_without_judgments_is_named() -> None:
    with pytest.raises(UserError, match="no judgments of 'c'"):
        rule_scores(Rule(judges=("c",)), scores(a=[1, 1, 1, 1]), KEYS)


def test_a_cascade_pays_for_the_share_that_reaches_each_judge() -> None:
    made = scores(a=[1, 0, 0, 0], b=[1, 1, 1, 1])
    prices = {"a": 0.01, "b": 0.2}
    paid = {
        kind: price(Rule.model_validate({"kind": kind, "judges": ("a", "b")}), made, KEYS, prices)
        for kind in ("panel", "cascade")
    }
    assert paid["panel"] == pytest.approx(0.21)
    assert paid["cascade"] == pytest.approx(0.01 + 0.2 / 4)
    assert price(Rule(judges=("b",)), made, KEYS, {"b": None}) is None


def test_prices_are_measured_a_trajectory_and_unknown_stays_unknown() -> None:
    judgments = [
        said(0, True, calls=(call(0.01), call(0.03))),
        said(1, True, calls=(call(0.02),)),
        said(0, True, judge="other", calls=(call(None), call(0.1))),
        said(0, True, judge="free"),
    ]
    assert measured_prices(judgments) == {"judge": pytest.approx(0.03), "other": None, "free": 0}


def test_thresholds_are_the_scores_that_occur_at_most_twelve() -> None:
    assert default_thresholds(Rule(judges=("a",)), scores(a=[1, 0, 1, 0])) == (1.0,)
    assert default_thresholds(Rule(judges=("a",)), scores(a=[0.9, 0.6, 0.2, 0.9])) == (0.9, 0.6)
    assert default_thresholds(Rule(judges=("a",)), scores(a=[0.1, 0.1, 0.1, 0.1])) == (1.0,)
    many = {"a": {key(n): n / 500 for n in range(501)}}
    found = default_thresholds(Rule(judges=("a",)), many)
    assert len(found) == 12
    assert (found[0], found[-1]) == (1.0, 0.5)


def test_the_hash_of_judgments_knows_no_order() -> None:
    one, two = said(0, True), said(1, False)
    assert judgments_hash([one, two]) == judgments_hash([two, one])
    assert judgments_hash([one, two]) != judgments_hash([one, said(1, True)])
