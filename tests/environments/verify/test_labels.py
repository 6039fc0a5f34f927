"""Labels follow from facts, and what experts would argue about stays open."""

from __future__ import annotations

import pytest

from trajudge.environments.verify.labels import (
    ExecutedAction,
    looping,
    optimality,
    published,
    repeated,
)
from trajudge.environments.verify.model import Labels


def action(action: str, before: str = "a", after: str = "a", url: str = "/") -> ExecutedAction:
    return ExecutedAction(url, action, before, after)


def test_only_what_is_done_again_in_vain_is_repetition() -> None:
    assert repeated([]) == 0
    assert repeated([action("click('1')")] * 3) == 3
    assert repeated([action("click('1')"), action("click('2')")] * 2) == 2
    assert repeated([action("click('1')", url="/a"), action("click('1')", url="/b")]) == 1
    assert repeated([action("click('1')", "a", "b"), action("click('1')", "b", "c")]) == 0
    assert repeated([action("fill('1', 'x')", "a"), action("fill('1', 'x')", "b", "b")]) == 1


@pytest.mark.parametrize(
    ("times", "label"), [(0, False), (1, False), (2, None), (3, True), (9, True)]
)
def test_twice_is_open_to_argument(times: int, label: bool | None) -> None:
    assert looping(times) is label


@pytest.mark.parametrize(
    ("steps", "label"),
    [(9, 4), (10, 4), (11, None), (12, 3), (14, 3), (15, None), (16, 2), (40, 2)],
)
def test_optimality_is_measured_by_the_shortest_way(steps: int, label: int | None) -> None:
    assert optimality(True, steps, 10) == label


def test_a_failure_is_a_complete_failure_and_an_open_success_leaves_it_open() -> None:
    assert optimality(False, 1, 10) == 1
    assert optimality(None, 1, 10) is None
    assert optimality(True, 5, 0) is None  # nobody knows the shortest way


def test_labels_are_published_in_agentrewardbench_s_words() -> None:
    labels = Labels(success=True, side_effect=False, repetition=None, optimality=3)
    assert published(labels) == {
        "trajectory_success": "Successful",
        "trajectory_side_effect": "No",
        "trajectory_optimality": "3. Somewhat Optimal",
        "trajectory_looping": "Unsure",
    }
