"""Rates of one perturbation, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.robustness.model import Relation
from trajudge.robustness.pairs import PerturbedPairs
from trajudge.robustness.rates import rates_of
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
