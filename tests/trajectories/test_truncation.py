"""The truncation ladder: never longer than asked, ever shorter, the same every time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.samples import examples
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.represent import MissingObservation, Representation
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncate import (
    MARKER_TOKENS,
    MAX_OVERFLOWS,
    STEP_OVERHEAD,
    TruncatedView,
    TruncationLevel,
    cut_middle,
    views,
)

LINE = "\t[12] button 'Add to cart', clickable\n"
TEXT = st.one_of(
    st.none(),
    st.text(st.characters(), max_size=40),
    st.builds(lambda text, times: text * times, st.text(max_size=8), st.integers(0, 3000)),
    st.just("\x00\ud800\n" * 500),
)
STEPS = st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=12)


def run(
    steps: list[tuple[str | None, str | None, str | None]],
    axtree: str | None = None,
    pruned: str | None = None,
    answer: str | None = None,
) -> Trajectory:
    made = [
        Step(
            index=index,
            observation=Observation(url=url, axtree=axtree, axtree_pruned=pruned),
            reasoning=reasoning,
            action=action,
        )
        for index, (url, reasoning, action) in enumerate(steps)
    ]
    key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
    return Trajectory(key=key, raw_task_id="t", goal="a goal", steps=tuple(made), answer=answer)


def counted(view: TruncatedView) -> int:
    """The tokens of a view, by the counter."""
    texts = [view.goal, view.answer, view.axtree]
    texts += [text for step in view.steps for text in (step.url, step.action, step.reasoning)]
    marker = MARKER_TOKENS if view.elided else 0
    return STEP_OVERHEAD * len(view.steps) + marker + sum(count_tokens(t) for t in texts if t)


def labels(trajectory: Trajectory, representation: Representation, budget: int) -> list[str]:
    return [view.rung.label for view in views(trajectory, representation, budget)]


@settings(max_examples=examples(60))
@given(STEPS, TEXT, TEXT, TEXT, st.integers(0, 20_000), st.sampled_from(list(Representation)))
def test_views_fit_shrink_and_repeat(
    steps: list[tuple[str | None, str | None, str | None]],
    axtree: str | None,
    pruned: str | None,
    answer: str | None,
    budget: int,
    representation: Representation,
) -> None:
    trajectory = run(steps, axtree, pruned, answer)
    try:
        found = list(views(trajectory, representation, budget))
    except MissingObservation:
        assert representation.shows_axtree
        return
    assert found == list(views(trajectory, representation, budget))
    assert all(view.tokens == counted(view) <= budget for view in found)
    tokens = [view.tokens for view in found]
    assert all(later < earlier for earlier, later in itertools.pairwise(tokens))
    rungs = [view.rung for view in found]
    assert rungs == sorted(rungs)
    assert len(found) <= MAX_OVERFLOWS + 1
    assert all(len(view.steps) + view.elided == len(steps) for view in found)


def test_the_rungs_come_in_order() -> None:
    tree = run([("u", "r", "a")] * 3, LINE * 900, LINE * 600)
    assert labels(tree, Representation.AXTREE, 10**6)[:4] == ["full", "pruned", "cut", "cut"]
    small = run([("u", "r", "a")] * 3, LINE * 9, LINE * 6)
    assert labels(small, Representation.AXTREE, 10**6)[:2] == ["full", "pruned"]


@pytest.mark.parametrize(("budget", "rung"), [(40_000, "full"), (7_500, "pruned"), (4_000, "cut")])
def test_the_first_view_is_the_fullest_that_fits(budget: int, rung: str) -> None:
    trajectory = run([("u", "r", "a")] * 3, LINE * 900, LINE * 600)
    assert labels(trajectory, Representation.AXTREE, budget)[0] == rung


def test_without_a_tree_only_the_steps_shrink() -> None:
    trajectory = run([("u", "because " * 900, "a")] * 30, LINE, LINE)
    for representation in (Representation.NONE, Representation.SCREENSHOT):
        found = list(views(trajectory, representation, 10**6))
        assert [view.rung for view in found[:2]] == [TruncationLevel.FULL, TruncationLevel.ELIDED]
        assert all(view.axtree is None for view in found)


def test_reasoning_is_shortened_before_steps_are_left_out() -> None:
    trajectory = run([("u", "because " * 900, "a")] * 30)
    (view, *_) = views(trajectory, Representation.NONE, 20_000)
    assert view.elided == 0
    assert all("characters left out" in str(step.reasoning) for step in view.steps)
    assert all(step.action == "a" for step in view.steps)


def test_the_first_and_twice_as_many_last_steps_stay() -> None:
    trajectory = run([("u", "because", "a")] * 300)
    (view, *_) = views(trajectory, Representation.NONE, 2_000)
    numbers = [step.number for step in view.steps]
    assert numbers[: view.head] == list(range(1, view.head + 1))
    assert numbers[view.head :] == list(range(view.head + view.elided + 1, 301))
    assert abs(len(numbers) - 3 * view.head) <= 2


@pytest.mark.slow
def test_a_megabyte_of_tree_and_three_hundred_steps() -> None:
    trajectory = run([("http://x/", "why " * 200, "click('1')")] * 300, LINE * 27_000)
    for budget in (100_000, 10_000, 1_000):
        (view, *_) = views(trajectory, Representation.AXTREE, budget)
        assert budget // 2 < view.tokens <= budget
        assert str(view.axtree).startswith("\t[12]")


def test_what_can_never_fit_gives_no_view() -> None:
    trajectory = run([("u", "r", "a")]).model_copy(update={"goal": "goal " * 5000})
    assert labels(trajectory, Representation.NONE, 1_000) == []


@given(st.text(st.characters(), max_size=30), st.integers(0, 400), st.integers(60, 500))
def test_a_cut_text_fits_and_keeps_both_ends(text: str, times: int, budget: int) -> None:
    whole = text * times
    cut = cut_middle(whole, budget)
    assert count_tokens(cut) <= budget
    if cut != whole:
        head, marker, tail = cut.rpartition(" characters left out ...]\n")
        before, _, left_out = head.rpartition("\n[... ")
        assert marker
        assert whole.startswith(before)
        assert whole.endswith(tail)
        assert len(before) + int(left_out) + len(tail) == len(whole)


def test_a_tree_is_cut_between_its_lines() -> None:
    lines = cut_middle(LINE * 500, 1000).splitlines(keepends=True)
    assert all(line == LINE or line.startswith("[...") for line in lines)
