"""What each transformation makes of a small run, and of which runs it makes nothing."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import Any

import pytest
from numpy.random import default_rng
from PIL import Image, ImageChops

from trajudge.robustness.apply import renumbered
from trajudge.robustness.model import (
    AnswerOutcome,
    Facts,
    GoalOutcome,
    LabelQuestion,
    NotApplicable,
    Relation,
    Sibling,
    Subject,
)
from trajudge.robustness.transforms import (
    TRANSFORMATIONS,
    appended,
    drawn_on,
    recorded_again,
    resolves,
    retitled,
    unparsable,
)
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey

TREE = "RootWebArea 'P'\n\t[7] link 'a'\n\t[9] link 'b'"
RIGHT = AnswerOutcome(kind="text", expected=("tea",), found=("tea",), right=True)
WRONG = AnswerOutcome(kind="text", expected=("tea",), found=("milk",), right=False)


def run(*steps: dict[str, Any], goal: str = "Buy tea.", answer: str | None = None) -> Trajectory:
    """A run of the given fields of steps and their pages."""
    own = ("action", "reasoning")
    return Trajectory(
        key=TrajectoryKey(benchmark="b", agent="a", task_id="t"),
        raw_task_id="t",
        goal=goal,
        answer=answer,
        steps=tuple(
            Step(
                index=index,
                observation=Observation(**{k: v for k, v in fields.items() if k not in own}),
                **{name: fields[name] for name in own if name in fields},
            )
            for index, fields in enumerate(steps)
        ),
    )


def acting(*actions: str | None, **fields: Any) -> Trajectory:
    return run(*({"action": action, **fields} for action in actions))


def changed(
    name: str, source: Trajectory, facts: Facts | None = None, seed: int = 0, **arguments: Any
) -> Trajectory | None:
    """The changed run; None if the transformation does not apply."""
    change = {"recorded_again": recorded_again, **TRANSFORMATIONS}[name]
    subject = Subject(trajectory=source, facts=facts or Facts())
    made = change(subject, default_rng(seed), **arguments)
    return None if isinstance(made, NotApplicable) else made


def actions(made: Trajectory | None) -> list[str | None] | None:
    return None if made is None else [step.action for step in made.steps]


def thoughts(made: Trajectory | None) -> list[str | None] | None:
    return None if made is None else [step.reasoning for step in made.steps]


def pages(made: Trajectory | None, field: str = "axtree") -> list[Any] | None:
    return None if made is None else [getattr(step.observation, field) for step in made.steps]


def sibling(
    *answers: AnswerOutcome, success: bool = False, answer: str | None = None, **page: Any
) -> Sibling:
    other = run({"action": f"other({answer!r})", **page}, answer=answer)
    return Sibling(
        trajectory=other, success=success, side_effect=False, repetition=False, answers=answers
    )


def test_a_node_is_appended_under_the_next_free_id() -> None:
    assert appended(f"{TREE}\n", "[{bid}] note 'n'") == f"{TREE}\n\t[10] note 'n'"
    assert appended("RootWebArea 'P'", "[{bid}] note 'n'") == "RootWebArea 'P'\n\t[1] note 'n'"
    assert retitled("RootWebArea 'P', focused", "new") == "RootWebArea 'P - new', focused"


def test_moved_steps_are_numbered_from_0() -> None:
    moved = run({"action": "a"}, {"action": "b"})
    moved = renumbered(moved.model_copy(update={"steps": moved.steps[::-1]}))
    assert [(step.index, step.action) for step in moved.steps] == [(0, "b"), (1, "a")]


@pytest.mark.parametrize(
    ("tree", "wrong"),
    [
        ("a 'b'\n\tc 'd'\n\t\te 'f'\n\ng 'h'", []),
        ("a 'b'\n  c 'd'\n    e 'f'", []),
        ("a 'b'\n\tc 'd'\n\t\t\te 'f'", ["\t\t\te 'f'"]),
        ("a 'b'\n  c 'd'\n   e 'f'", ["   e 'f'"]),
        ("\ta 'b'", ["\ta 'b'"]),
        ("7 'b'", ["7 'b'"]),
    ],
)
def test_a_node_is_at_most_one_level_deeper_than_the_one_before(
    tree: str, wrong: list[str]
) -> None:
    assert unparsable(tree) == wrong


@pytest.mark.parametrize(
    ("action", "tree", "resolved"),
    [
        ("click('7')", TREE, True),
        ("click('8')", TREE, False),
        ("click('8')", None, True),
        ("noop()", TREE, True),
        (None, TREE, True),
    ],
)
def test_the_element_of_an_action_is_in_the_tree(
    action: str | None, tree: str | None, resolved: bool
) -> None:
    assert resolves(acting(action).steps[0], tree) is resolved


def test_words_are_drawn_in_a_box_above_the_lower_edge() -> None:
    """Small letters are 11 pixels high, on lines of 15; 59 of them fit into 360 pixels."""
    for letters, place, box in (
        (59, "small", (12, 267, 389, 295)),
        (60, "small", (12, 252, 389, 295)),
        (60, "margin", (12, 265, 389, 295)),
    ):
        black = Image.new("RGB", (400, 300))
        made = drawn_on(black.copy(), "x" * letters, place)  # type: ignore[arg-type]
        assert ImageChops.difference(black, made).getbbox() == box
    two = drawn_on(Image.new("RGB", (400, 300)), "x" * 60, "small")
    first, second = (two.crop((20, top, 25, top + 15)) for top in (258, 273))
    assert first.tobytes() == second.tobytes()
    assert min(first.tobytes()) < 128


def test_lines_end_with_a_text() -> None:
    made = changed("lines_ended", run({"axtree": TREE, "reasoning": "So."}), ending=" ")
    assert pages(made) == ["RootWebArea 'P' \n\t[7] link 'a' \n\t[9] link 'b' "]
    assert thoughts(made) == ["So. "]


def test_two_elements_change_their_ids_with_the_actions_that_name_them() -> None:
    source = run(
        {"axtree": TREE, "action": "click('7')"},
        {"axtree": TREE, "action": "send_msg_to_user('7')"},
        {"axtree": TREE},
    )
    made = {
        (pages(one)[0], *actions(one))  # type: ignore[index, misc]
        for seed in range(20)
        if (one := changed("elements_renumbered", source, seed=seed))
    }
    swapped = "RootWebArea 'P'\n\t[9] link 'a'\n\t[7] link 'b'"
    assert made == {
        (TREE, "click('7')", "send_msg_to_user('7')", None),
        (swapped, "click('9')", "send_msg_to_user('7')", None),
    }
    assert changed("elements_renumbered", run({"axtree": "RootWebArea 'P'\n\t[7] x 'y'"})) is None


def test_hosts_are_renamed_unless_the_goal_names_one() -> None:
    rename = partial(changed, "hosts_renamed", domain="example")
    page = {"url": "http://shop.test/a", "action": "goto('http://shop.test/b')"}
    made = rename(run(page, {"axtree": TREE}))
    assert pages(made, "url") == ["http://h0.example/a", None]
    assert actions(made) == ["goto('http://h0.example/b')", None]
    assert rename(run(page, goal="Open shop.test.")) is None
    assert rename(run({"axtree": TREE})) is None


def test_two_parameters_are_reversed_and_one_is_not() -> None:
    urls = [f"http://shop.test/{query}" for query in ("?a=1&b=", "?a=1", "")]
    made = changed("parameters_reversed", run(*({"url": url} for url in urls)))
    assert pages(made, "url") == ["http://shop.test/?b=&a=1", *urls[1:]]
    assert changed("parameters_reversed", run(*({"url": url} for url in urls[1:]))) is None


def test_an_idle_step_is_inserted_into_three_and_not_into_two() -> None:
    insert = partial(changed, "step_inserted", action="noop()", thought="Wait.")
    made = insert(acting("a", "b", None, reasoning="So."))
    assert actions(made) == ["a", "noop()", "b", None]
    assert thoughts(made) == ["So.", "Wait.", "So.", "So."]
    assert thoughts(insert(acting("a", "b", None))) == [None] * 4
    assert insert(acting("a", None)) is None
    assert insert(acting("a", "noop()", None)) is None


def test_idle_steps_are_appended_before_the_last() -> None:
    append = partial(changed, "steps_appended", actions=["x", "y"])
    assert actions(append(acting("a", "b"))) == ["a", "x", "y", "b"]
    assert append(acting("a", "x", None)) is None
    assert append(run()) is None


def test_one_tree_is_kept_where_there_are_both_and_actions_resolve_in_it() -> None:
    keep = partial(changed, "one_tree_kept", kept="axtree_pruned", lost="axtree")
    both = {"axtree": TREE, "axtree_pruned": "RootWebArea 'P'\n\t[7] link 'a'"}
    made = keep(run({**both, "action": "click('7')"}, {"axtree": TREE}))
    assert pages(made) == [None, TREE]
    assert keep(run({**both, "action": "click('9')"})) is None
    assert pages(keep(run({**both, "action": "click('10')"}))) == [None]


def test_a_screenshot_is_compressed_scaled_or_cropped() -> None:
    """Scaled to three quarters; cropped by three hundredths of each side."""
    file = BytesIO()
    Image.new("RGB", (400, 300)).save(file, "PNG")
    source = run({"screenshot": ImageRef(data=file.getvalue())})
    made = {}
    for how in ("compressed", "scaled", "cropped"):
        refs = pages(changed("picture_changed", source, how=how), "screenshot")
        assert refs is not None
        with Image.open(BytesIO(refs[0].data)) as picture:
            made[how] = (picture.format, picture.size)
    assert made == {
        "compressed": ("JPEG", (400, 300)),
        "scaled": ("PNG", (300, 225)),
        "cropped": ("PNG", (376, 282)),
    }
    assert changed("picture_changed", run({"axtree": TREE}), how="scaled") is None
    lost = run({"screenshot": ImageRef(problem="it is lost")})
    assert changed("picture_changed", lost, how="scaled") is None


def test_a_repeated_page_is_dropped_unless_it_is_the_last() -> None:
    trees = ["P 'p'", "P 'p'", "Q 'q'", "Q 'q'"]
    made = changed("repeats_dropped", run(*({"axtree": one} for one in trees)), fields=["axtree"])
    assert pages(made) == ["P 'p'", None, "Q 'q'", "Q 'q'"]
    named = [{"page_error": "lost"}] * 3
    made = changed("repeats_dropped", run(*named), fields=["page_error"])
    assert pages(made, "page_error") == ["lost"] * 3


def test_another_run_of_the_case_has_the_wanted_outcome() -> None:
    known = [
        sibling(success=True, answer="done"),
        sibling(RIGHT, answer="tea"),
        sibling(WRONG, answer="milk"),
    ]
    source, facts = acting("a"), Facts(siblings=tuple(known))
    other = partial(changed, "other_run", source, facts, side_effect=False)
    assert actions(other(success=True)) == ["other('done')"]
    assert actions(other(success=False)) == ["other('tea')"]
    assert actions(other(success=False, wrong_answer=True)) == ["other('milk')"]
    assert other(success=True, wrong_answer=True) is None


def test_a_goal_of_another_case_has_the_wanted_outcome() -> None:
    goals = (GoalOutcome(goal="Yes.", success=True), GoalOutcome(goal="No.", success=False))
    for success, goal in ((True, "Yes."), (False, "No.")):
        made = changed(
            "other_goal", acting("a"), Facts(goals=goals), success=success, side_effect=None
        )
        assert made and made.goal == goal


def test_an_answer_of_another_is_one_that_the_checker_rejects() -> None:
    source = run({"action": "send_msg_to_user('tea')"}, answer="tea")
    others = (sibling(RIGHT, answer="tea!"), sibling(WRONG, answer="milk"), sibling(WRONG))
    made = changed("answer_of_another", source, Facts(answers=(RIGHT,), siblings=others))
    assert made and (made.answer, actions(made)) == ("milk", ["send_msg_to_user('milk')"])
    assert changed("answer_of_another", source, Facts(siblings=others)) is None
    assert changed("answer_of_another", source, Facts(answers=(RIGHT,))) is None


def test_an_answer_is_mended_if_it_is_the_only_fault() -> None:
    source = run({"action": "send_msg_to_user('milk')"}, answer="milk")
    made = changed("answer_mended", source, Facts(answers=(WRONG,)))
    assert made and made.answer == "Answer: tea"
    open_ended = WRONG.model_copy(update={"expected": ()})
    for facts in (Facts(answers=(WRONG,), missed=("m",)), Facts(), Facts(answers=(open_ended,))):
        assert changed("answer_mended", source, facts) is None


@pytest.mark.parametrize(
    ("steps", "kept"), [("ab", None), ("abc", "a"), ("abcd", "a"), ("abcde", "ab")]
)
def test_the_second_half_is_cut(steps: str, kept: str | None) -> None:
    made = changed("second_half_cut", acting(*steps, reasoning="So."))
    assert actions(made) == (kept and [*kept, None])
    assert thoughts(made) == (kept and [*["So."] * len(kept), None])


def test_an_expectation_is_stated_in_each_of_the_last_steps() -> None:
    facts = Facts(
        source="state",
        held=("added line: product = tea, quantity = 2",),
        missed=("removed line: product = milk",),
    )
    state = partial(
        changed,
        "progress_stated",
        acting("a", "b", "c", None, reasoning="So."),
        named="{number}/{count} {predicate}:",
        blank="{number}/{count}:",
    )
    assert thoughts(state(facts)) == [
        "So.",
        "1/3 added line (product, quantity): So.",
        "2/3 removed line (product): So.",
        "3/3: So.",
    ]
    labels = facts.model_copy(update={"source": "labels"})
    assert thoughts(state(labels)) == ["So.", "1/3: So.", "2/3: So.", "3/3: So."]


def test_the_last_thought_is_continued() -> None:
    source = run({"reasoning": "A."}, {"reasoning": "B."}, {"action": "x"})
    assert thoughts(changed("last_thought_continued", source, text="C.")) == ["A.", "B. C.", None]


def test_the_last_page_is_that_of_a_success() -> None:
    good = {"axtree": "Done 'd'", "url": "http://shop.test/done"}
    facts = Facts(
        siblings=(sibling(axtree="Fail 'f'", url="f"), sibling(success=True, answer="x", **good))
    )
    source = run({"axtree": TREE, "action": "click('7')"}, {"axtree": TREE})
    fields = ["axtree", "axtree_pruned", "url"]
    made = changed("page_of_success", source, facts, fields=fields)
    assert pages(made) == [TREE, "Done 'd'"]
    assert changed("page_of_success", source, facts, fields=["page_error"]) is None
    visited = changed("page_visited", source, facts)
    assert actions(visited) == ["click('7')", "goto('http://shop.test/done')", None]
    assert pages(visited, "url") == [None, None, "http://shop.test/done"]
    for siblings in ((), (sibling(success=True, axtree="Done 'd'"),)):
        assert changed("page_visited", source, Facts(siblings=siblings)) is None


def test_an_entry_gets_the_text_of_the_successful_run() -> None:
    source = acting("fill('7', 'same')", "fill('9', 'mine')", None)
    good = acting("fill('7', 'same')", "fill('9', 'theirs')", None)
    other = sibling(success=True).model_copy(update={"trajectory": good})
    made = changed("entry_retargeted", source, Facts(siblings=(other,)))
    assert actions(made) == ["fill('7', 'same')", "fill('9', 'theirs')", None]
    assert changed("entry_retargeted", good, Facts(siblings=(other,))) is None


def test_the_last_click_of_four_steps_is_removed() -> None:
    made = changed("click_removed", acting("click('1')", "click('2')", "b", None))
    assert actions(made) == ["click('1')", "b", None]
    assert changed("click_removed", acting("click('1')", "b", None)) is None
    assert changed("click_removed", acting("a", "b", "c", None)) is None


@pytest.mark.parametrize(
    ("steps", "swapped"),
    [("abcde", "abdce"), ("abcce", "acbce"), ("abc", None), ("abbbe", None), ("abce", "acbe")],
)
def test_the_last_two_steps_that_differ_are_swapped(steps: str, swapped: str | None) -> None:
    assert actions(changed("steps_swapped", acting(*steps))) == (swapped and [*swapped])


@pytest.mark.parametrize(
    ("url", "same_way", "applies"),
    [
        ("http://b.test/cart", {}, True),
        ("http://b.test/other", {}, True),
        ("http://b.test/cart", {"same_way": True}, True),
        ("http://b.test/other", {"same_way": True}, False),
    ],
)
def test_a_run_recorded_again_may_have_to_take_the_same_way(
    url: str, same_way: dict[str, bool], applies: bool
) -> None:
    source = run({"url": "http://a.test/cart"})
    relations = {LabelQuestion.SUCCESS: Relation.KEEP}
    facts = Facts(success=True, again={"dark": sibling(success=True, url=url)})
    made = changed("recorded_again", source, facts, variant="dark", relations=relations, **same_way)
    assert pages(made, "url") == ([url] if applies else None)
