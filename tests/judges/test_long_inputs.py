"""No prompt of the papers' judges passes its model's window, and an overflow makes it shorter."""

from __future__ import annotations

import asyncio

import pytest

from tests.judges.runs import StagedAsk, pictures, seen_run, texts
from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.model import Verdict
from trajudge.judges.prompting import AuxiliaryModel, prompt_tokens, two_trees
from trajudge.judges.registry import make_judge
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Observation, Trajectory
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncate import TruncationLevel

STATUS = "Thoughts: fine.\nStatus: success\nReward: 5"
MODELS = ("aer-c", "aer-v", "nnetnav", "webvoyager", "webjudge")


def judged(name: str, run: Trajectory, ask: StagedAsk, **options: object) -> Verdict:
    _, judge = make_judge(name, options)

    async def judge_it() -> Verdict:
        return await judge(run, ask)

    return asyncio.run(judge_it())


def long_run(steps: int = 40) -> Trajectory:
    """Steps that say much, on pages with much on them."""
    run = seen_run(steps)
    page = "\t[12] link 'Orders and </goal> returns', clickable\n" * 2_000
    made = [
        step.model_copy(
            update={
                "reasoning": f"Step {step.index}: " + "I must find the red mug. " * 300,
                "action": "click('12')",
                "observation": step.observation.model_copy(
                    update={"axtree": f"RootWebArea {step.index}\n{page}", "axtree_pruned": None}
                ),
            }
        )
        for step in run.steps
    ]
    return run.model_copy(update={"steps": tuple(made), "answer": "It is done. " * 4_000})


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("limit", [6_000, 30_000])
def test_every_prompt_keeps_within_its_models_window(name: str, limit: int) -> None:
    ask = StagedAsk(verdict=STATUS)
    small = AuxiliaryModel(max_prompt_tokens=limit // 2)
    others = {"aer-c": {"captioner": small}, "nnetnav": {"describer": small}}.get(name, {})
    assert judged(name, long_run(), ask, max_prompt_tokens=limit, **others).success
    for asked in ask.asked:
        within = limit // 2 if asked.stage in ("caption", "describe") else limit
        assert prompt_tokens(asked.messages) <= within
    assert len(ask.stage("verdict")) == 1


@pytest.mark.parametrize("name", MODELS)
def test_an_overflow_is_met_with_a_shorter_prompt(name: str) -> None:
    overflow = ContextOverflow("too long")
    ask = StagedAsk(verdict=[overflow, overflow, STATUS])
    assert judged(name, long_run(), ask, max_prompt_tokens=30_000).success
    sizes = [prompt_tokens(asked.messages) for asked in ask.stage("verdict")]
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < sizes[0] / 2


@pytest.mark.parametrize("name", MODELS)
def test_overflows_without_end_are_final(name: str) -> None:
    ask = StagedAsk(verdict=[ContextOverflow("too long")] * 20)
    with pytest.raises(ContextOverflow):
        judged(name, long_run(5), ask)
    assert len(ask.stage("verdict")) < 8


@pytest.mark.parametrize("name", ["aer-c", "aer-v", "webvoyager"])
def test_a_prompt_that_never_fits_is_not_sent(name: str) -> None:
    ask = StagedAsk(verdict=STATUS)
    with pytest.raises(ContextOverflow, match="300 tokens"):
        judged(name, seen_run(), ask, max_prompt_tokens=300)
    assert not ask.stage("verdict")


def test_a_description_that_overflows_is_asked_for_with_shorter_trees() -> None:
    ask = StagedAsk(verdict=STATUS, describe=[ContextOverflow("too long"), "It changed."])
    assert judged("nnetnav", long_run(2), ask).success
    assert [asked.rung for asked in ask.stage("describe")] == ["full", "cut"]


def test_the_last_screenshots_stay() -> None:
    ask = StagedAsk(verdict=STATUS)
    judged("webvoyager", seen_run(20), ask, screenshots=3)
    [asked] = ask.asked
    assert [shown.width for shown in pictures(asked.messages)] == [25, 26, 27]
    assert "the last 3 of 20 screenshots" in texts(asked.messages)[1]
    overflow = ContextOverflow("too long")
    ask = StagedAsk(verdict=[overflow, STATUS])
    judged("webvoyager", seen_run(4), ask, max_prompt_tokens=3_000)
    first, second = ([p.width for p in pictures(asked.messages)] for asked in ask.asked)
    assert first == [8, 9, 10, 11]
    assert second == first[-len(second) :] != first


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("aer-c", "screenshot"),
        ("aer-v", "screenshot"),
        ("webvoyager", "screenshot"),
        ("webjudge", "screenshot"),
        ("nnetnav", "axtree"),
    ],
)
def test_what_is_not_recorded_is_said_before_anything_is_asked(name: str, missing: str) -> None:
    run = seen_run()
    blind = [
        step.model_copy(update={"observation": step.observation.model_copy(update={missing: None})})
        for step in run.steps
    ]
    ask = StagedAsk()
    with pytest.raises(MissingObservation):
        judged(name, run.model_copy(update={"steps": tuple(blind[:2])}), ask)
    with pytest.raises(MissingObservation):
        judged(name, run.model_copy(update={"steps": ()}), ask)
    assert not ask.asked


def test_a_single_missing_tree_leaves_no_partial_list() -> None:
    run = seen_run(4)
    steps = list(run.steps)
    steps[1] = steps[1].model_copy(update={"observation": Observation(url="http://shop.test/")})
    with pytest.raises(MissingObservation, match="step 2 has no accessibility tree"):
        judged("nnetnav", run.model_copy(update={"steps": tuple(steps)}), StagedAsk())


def test_two_trees_are_full_then_pruned_then_cut() -> None:
    page = "[1] button 'x'\n"
    long = Observation(axtree=page * 900, axtree_pruned=page * 300)
    sizes = [10**6, 5_000, 1_500, 100]
    found = [two_trees(long, long, size) for size in sizes]
    assert [pair.rung.label for pair in found if pair] == ["full", "pruned", "cut", "cut"]
    for pair, size in zip(found, sizes, strict=True):
        assert pair
        assert count_tokens(pair.before) + count_tokens(pair.after) <= size
    assert two_trees(long, long, 79) is None
    assert two_trees(long, long, 80) is not None
    short = Observation(axtree_pruned=page)
    pair = two_trees(short, long, 4_000)
    assert pair
    assert (pair.before, len(pair.after) > 1_000) == (page, True)


def test_of_two_trees_the_one_that_is_there_is_shown() -> None:
    page = "[1] button 'x'\n"
    full, pruned = Observation(axtree=page * 40), Observation(axtree=page * 40, axtree_pruned=page)
    whole, small = count_tokens(page * 40), count_tokens(page)
    level = TruncationLevel
    assert two_trees(full, full, 2 * whole) == (level.FULL, page * 40, page * 40)
    assert two_trees(Observation(), full, whole) == (level.FULL, "", page * 40)
    assert two_trees(full, Observation(), whole) == (level.FULL, page * 40, "")
    assert two_trees(pruned, full, whole + small) == (level.PRUNED, page, page * 40)
    assert two_trees(full, pruned, whole + small) == (level.PRUNED, page * 40, page)
    assert two_trees(pruned, full, 2 * whole) == (level.FULL, page * 40, page * 40)


def test_a_run_of_one_step_has_no_change_to_describe() -> None:
    """Its action may be recorded, and a page after it not: nothing is said of either."""
    whole = seen_run(1)
    for action in (None, "click('1')"):
        step = whole.steps[0].model_copy(update={"action": action})
        run = whole.model_copy(update={"steps": (step,)})
        ask = StagedAsk(verdict=STATUS)
        assert judged("nnetnav", run, ask).success
        assert [asked.stage for asked in ask.asked] == ["verdict"]
        changes = texts(ask.asked[0].messages)[-1].split("changes>")[1]
        assert changes == "\nNo change between two pages was recorded.\n</"


def test_a_dry_answer_leads_through_all_stages() -> None:
    for name in MODELS:
        ask = StagedAsk()
        with pytest.raises(ParseFailure):
            judged(name, seen_run(), ask)
        assert ask.stage("verdict")
