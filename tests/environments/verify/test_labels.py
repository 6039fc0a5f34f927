"""Labels follow from facts, and what experts would argue about stays open."""

from __future__ import annotations

import pytest

from trajudge.environments.verify.labels import (
    ExecutedAction,
    Viewpoint,
    looping,
    optimality,
    published,
    repeated,
)
from trajudge.environments.verify.model import Labels
from trajudge.trajectories.model import Observation

LONG = "RootWebArea 'Shop', visible" + "\n\tStaticText 'tea', visible" * 199  # 1,090 pixels


def action(action: str, before: str = "a", after: str = "a", view: str = "/") -> ExecutedAction:
    return ExecutedAction(view, action, before, after)


def test_only_what_is_done_again_in_vain_is_repetition() -> None:
    assert repeated([]) == 0
    assert repeated([action("click('1')")] * 3) == 3
    assert repeated([action("click('1')"), action("click('2')")] * 2) == 2
    assert repeated([action("click('1')", view="/a"), action("click('1')", view="/b")]) == 1
    assert repeated([action("click('1')", "a", "b"), action("click('1')", "b", "c")]) == 0
    assert repeated([action("fill('1', 'x')", "a"), action("fill('1', 'x')", "b", "b")]) == 1


def views(*actions: str, tree: str = LONG) -> list[str]:
    viewpoint = Viewpoint()
    return [viewpoint.act(Observation(url="/a", axtree=tree), action) for action in actions]


def test_scrolling_leads_to_another_view_until_the_page_ends() -> None:
    down, up, end = "scroll(0, 300)", "scroll_at(9, 9, 0, -300)", "noop()"
    first, second, third, fourth = views(down, down, down, end)
    assert first != second != third == fourth  # 322 pixels are below the window
    top, lower, again, higher = views(down, up, up, end)
    assert top == again == higher != lower
    assert len({*views(down, down, tree="RootWebArea 'Shop'")}) == 1  # all of it is in view
    assert len({*views("scroll('a')", "scrolled(1)", "scroll_down()", end)}) == 1


def test_a_view_is_the_page_and_not_what_the_window_shows_of_it() -> None:
    viewpoint = Viewpoint()
    seen = Observation(url="/a", axtree=LONG)
    view = viewpoint.act(seen, "scroll(0, 300)")
    scrolled = viewpoint.act(seen, "click('1')")
    other = viewpoint.act(seen.model_copy(update={"url": "/b"}), "go_back()")
    hidden = seen.model_copy(update={"axtree": LONG.replace(", visible", "")})
    assert viewpoint.act(hidden, "noop()") == view  # a page begins at its top
    changed = hidden.model_copy(update={"axtree": LONG.replace("tea", "jam")})
    assert len({view, scrolled, other, viewpoint.act(changed, "noop()")}) == 4


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
