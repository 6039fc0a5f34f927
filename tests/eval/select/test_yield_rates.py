"""Ties between candidates: the test of a difference errs as often as it says, and not more."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.eval.select.decide import indistinguishable
from trajudge.eval.select.evidence import SelectionData

WORLDS = 500


def world(rng: np.random.Generator, kept: tuple[float, float]) -> SelectionData:
    """60 tasks of 1 to 6 runs, whose runs succeed together; each candidate accepts its share of
    the successes and a twentieth of the failures."""
    task = np.repeat(np.arange(60), rng.integers(1, 7, 60))
    success = rng.random(len(task)) < rng.beta(0.8, 1.2, 60)[task]
    easy = rng.beta(2, 2, 60)[task] * 2
    rates = np.where(success[:, None], np.minimum(easy[:, None] * kept, 1), 0.05)
    accepted = rng.random(rates.shape) < rates
    judged = np.ones_like(accepted)
    names = np.where(task < 30, "webarena", "visualwebarena")
    return SelectionData(success, task, names, judged, accepted, prices=(0.02, 0.02))


def told_apart(kept: tuple[float, float], training: float | None) -> float:
    """How often the first candidate is told from the second, per rollout or per dollar."""
    apart = 0
    for number in range(WORLDS):
        made = world(np.random.default_rng([7, number]), kept)
        clean = made.accepted & made.success[:, None]
        spent: np.ndarray = np.ones(made.accepted.shape)
        if training is not None:
            spent = 0.07 + training * made.accepted
        apart += indistinguishable(made, clean, spent, 0, [1], alpha=0.05) == []
    return apart / WORLDS


@pytest.mark.slow
@pytest.mark.parametrize("training", [None, 0.3])
def test_equal_yields_are_told_apart_in_one_sample_of_twenty_at_most(
    training: float | None,
) -> None:
    assert told_apart((0.5, 0.5), training) <= 0.05 + 3 * (0.05 * 0.95 / WORLDS) ** 0.5


@pytest.mark.slow
def test_yields_that_differ_are_told_apart() -> None:
    assert told_apart((0.65, 0.35), None) > 0.9


def test_a_candidate_is_tied_with_its_double_and_where_nothing_is_accepted() -> None:
    made = world(np.random.default_rng(0), (0.5, 0.5))
    same = np.repeat(made.accepted[:, :1], 2, axis=1)
    clean = same & made.success[:, None]
    for above in (clean, np.zeros_like(same)):
        assert indistinguishable(made, above, np.ones(same.shape), 0, [1], alpha=0.05) == [1]
