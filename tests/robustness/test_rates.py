"""Rates of one perturbation, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.robustness.model import Relation
from trajudge.robustness.pairs import PerturbedPairs, RunVerdict
from trajudge.robustness.rates import Undetectable, rates_of, undetectable
from trajudge.trajectories.model import TrajectoryKey

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
