"""Preprocessing of appendix B."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.stats.difficulty import Attempts, attempts, step_bin

LABELS: dict[object, object] = {"a": 1, "b": 1, "c": 2}


def made(steps: list[int], success: list[int]) -> Attempts:
    names = ["a", "b", "c"][: len(steps)]
    return attempts(
        ["x"] * len(steps),
        names,
        steps,
        success,
        site=LABELS,
        template=LABELS,
        category=LABELS,
    )


def test_step_bins_are_the_published_ones() -> None:
    assert step_bin([1, 2, 3, 5, 6, 10, 11, 20, 21, 30]).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_steps_are_held_within_one_and_the_cap() -> None:
    assert made([0, 12, 99], [0, 1, 1]).steps.tolist() == [1, 12, 30]


def test_out_of_budget_does_not_look_at_the_outcome() -> None:
    assert made([30, 30, 5], [1, 0, 0]).exhausted.tolist() == [True, True, False]


def test_reference_steps() -> None:
    """Few successes: the 60th percentile of all; thirty: the median of the successes."""
    few = made([2, 4, 10], [1, 0, 0])
    assert few.reference_steps().tolist() == pytest.approx([np.quantile([2, 4], 0.6), 10])
    names = [f"t{i}" for i in range(40)]
    labels: dict[object, object] = dict.fromkeys(names, "s")
    many = attempts(
        ["x"] * 40,
        names,
        [3] * 30 + [20] * 10,
        [1] * 30 + [0] * 10,
        site=labels,
        template=labels,
        category=labels,
    )
    assert many.reference_steps().tolist() == [3]


def test_outcomes_are_open_where_an_agent_did_not_try() -> None:
    data = attempts(
        ["x", "x", "y"],
        ["a", "b", "a"],
        [1, 2, 3],
        [1, 0, 1],
        site=LABELS,
        template=LABELS,
        category=LABELS,
    )
    assert data.outcomes()[1, 0] == 1
    assert np.isnan(data.outcomes()[1, 1])
    assert data.agents_per_task.tolist() == [2, 1]


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two runs"):
        attempts(
            ["x", "x"], ["a", "a"], [1, 1], [0, 1], site=LABELS, template=LABELS, category=LABELS
        )
    with pytest.raises(ValueError, match="'z' has no site"):
        attempts(["x"], ["z"], [1], [0], site=LABELS, template=LABELS, category=LABELS)
