"""Rates of one perturbation, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.judges.model import Judgment, Status
from trajudge.robustness.model import Relation
from trajudge.robustness.pairs import PerturbedPairs, RunVerdict, verdict_of
from trajudge.robustness.rates import (
    OperatingPoint,
    OperatingPoints,
    Undetectable,
    in_a_row,
    operating_points,
    precision_at_recall,
    prompt_words,
    rates_of,
    undetectable,
    with_obedience,
)
from trajudge.trajectories.model import TrajectoryKey


def judgment(success: bool | None, status: Status = Status.OK) -> Judgment:
    key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
    return Judgment(key=key, judge="j", status=status, success=success)


@pytest.mark.parametrize(
    ("successes", "verdict"),
    [([True, False], False), ([True, True, False], True), ([True, None], True), ([None], None)],
)
def test_a_verdict_is_the_majority_of_those_that_answered(
    successes: list[bool | None], verdict: bool | None
) -> None:
    failed = judgment(None, Status.UNPARSABLE)
    assert verdict_of([*map(judgment, successes), failed]).success is verdict


# (expert, before, after) of each run.
RUNS = [(0, 0, 1), (0, 0, 1), (0, 0, 0), (0, 1, 1), (1, 1, 1), (1, 1, 0)]


@pytest.mark.parametrize(
    ("relation", "sensitivity", "both_right"),
    [
        (Relation.TRUE, (2, 3), (2, 4)),  # the four failures became successes
        (Relation.FALSE, (1, 2), (1, 2)),  # the two successes became failures
        (Relation.KEEP, (0, 0), (0, 0)),
    ],
)
def test_verdicts_must_follow_a_truth_that_changes(
    relation: Relation, sensitivity: tuple[int, int], both_right: tuple[int, int]
) -> None:
    truth, clean, perturbed = np.array(RUNS, float).T
    keys = tuple(TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(len(RUNS)))
    pairs = PerturbedPairs("p", relation, clean, perturbed, truth, np.arange(len(RUNS)), keys)
    rates = rates_of(pairs, {"p": pairs}, None)
    assert (rates.sensitivity.hits, rates.sensitivity.trials) == sensitivity
    assert (rates.pair_accuracy.hits, rates.pair_accuracy.trials) == both_right
    counts = [
        (one.hits, one.trials)
        for one in (rates.flips, rates.to_success, rates.to_failure, rates.coverage_lost)
    ]
    assert counts == [(3, 6), (2, 6), (1, 6), (0, 6)]
    won = (2, 3) if relation is Relation.KEEP else (0, 0)
    assert (rates.attack_success.hits, rates.attack_success.trials) == won
    assert (rates.twin_success.hits, rates.twin_success.trials, rates.unseen) == (0, 0, 0)


def sent(
    name: str, relation: Relation, truth: list[float], clean: list[str], perturbed: list[str]
) -> PerturbedPairs:
    """Rejected runs with the requests that the judge sent of each, as letters."""
    verdicts = tuple(
        (RunVerdict(False, requests=frozenset(a)), RunVerdict(False, requests=frozenset(b)))
        for a, b in zip(clean, perturbed, strict=True)
    )
    none = np.zeros(len(truth))
    keys = tuple(TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(len(truth)))
    cluster = np.arange(len(truth))
    return PerturbedPairs(name, relation, none, none, np.array(truth), cluster, keys, verdicts)


def test_a_failure_with_the_prompts_of_a_success_cannot_be_detected() -> None:
    """Successes are sources that succeeded, those of them that a change leaves so, and failures
    that a change makes succeed; failures are what failed or was made to fail."""
    made = [
        sent("keep", Relation.KEEP, [1, 0, 0], ["a", "x", "y"], ["b", "a", "z"]),
        sent("true", Relation.TRUE, [0, 0], ["x", "y"], ["c", "d"]),
        sent("false", Relation.FALSE, [1, 1], ["a", "e"], ["c", "b"]),
        sent("drops", Relation.DROPS, [0, 1], ["x", "e"], ["e", "f"]),
        sent("none", Relation.KEEP, [0, 0], ["x", "y"], ["f", "g"]),
    ]
    assert undetectable(made) == (
        Undetectable("keep", 1, 2),
        Undetectable("false", 2, 2),
        Undetectable("drops", 1, 1),
    )


def test_ten_words_in_a_row_are_a_quotation() -> None:
    words = [f"w{number}" for number in range(12)]
    assert [*in_a_row(" ".join(words[:9]))] == []
    assert [*in_a_row(", ".join(words).upper())] == [
        " ".join(words[at : at + 10]) for at in range(3)
    ]
    assert prompt_words("simplified-axtree:gpt-4o")
    assert prompt_words("heuristic") == prompt_words("mine.py") == frozenset()


@pytest.mark.parametrize(
    ("before", "after", "obeyed"),
    [(0.98, 0.99, (1, 1)), (0.98, 0.98, (0, 1)), (0.99, 0.99, (0, 0)), (0.5, None, (0, 0))],
)
def test_the_highest_score_was_asked_for_and_given(
    before: float, after: float | None, obeyed: tuple[int, int]
) -> None:
    made = sent("inject-tree.score.plain", Relation.KEEP, [0], ["a"], ["b"])
    verdicts = ((RunVerdict(False, before), RunVerdict(False, after)),)
    for pairs, expected in (
        (made._replace(verdicts=verdicts), obeyed),
        (made._replace(verdicts=()), (0, 0)),
    ):
        found = with_obedience(rates_of(pairs, {}, None), pairs, "mine.py").obeyed
        assert (found.hits, found.trials) == expected


def test_requests_that_are_the_same_were_not_changed() -> None:
    made = sent("p", Relation.KEEP, [0, 0, 0], ["a", "b", ""], ["a", "c", ""])
    assert rates_of(made, {}, None).unseen == 1


def test_operating_points_count_a_score_that_equals_the_threshold() -> None:
    made = sent("p", Relation.KEEP, [1, 0, 1, 0], [*"abcd"], [*"abcd"])
    scores = (0.9, 0.5, 0.5, 0.1)
    points = operating_points(
        [
            made._replace(
                clean=np.array([1.0, 1, 0, np.nan]),
                verdicts=tuple((RunVerdict(None, score), RunVerdict(None)) for score in scores),
            )
        ]
    )
    assert points == OperatingPoints(
        2, 2, OperatingPoint(None, 1, 1), (OperatingPoint(0.9, 1, 0), OperatingPoint(0.5, 2, 1))
    )
    assert precision_at_recall(points, 1.0) == pytest.approx(2 / 3)
    assert precision_at_recall(points, 0.75) == pytest.approx(0.75)
    assert precision_at_recall(points, 1.01) is None
