"""What the judges without a model say, and when they say nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.runs import ScriptedAsk, mug_run
from trajudge.judges.methods.heuristic import Heuristic, HeuristicOptions, cycle_repeats
from trajudge.judges.methods.rule_based import RuleBased, RuleBasedOptions
from trajudge.judges.model import Skipped, Verdict
from trajudge.trajectories.model import Observation, Step, Trajectory


def ruled(run: Trajectory) -> Verdict:
    return asyncio.run(_give(RuleBased(RuleBasedOptions())(run, ScriptedAsk())))


def guessed(run: Trajectory) -> Verdict:
    return asyncio.run(_give(Heuristic(HeuristicOptions())(run, ScriptedAsk())))


async def _give(verdict: Awaitable[Verdict]) -> Verdict:
    return await verdict


def acting(*actions: str | None, **changes: object) -> Trajectory:
    steps = tuple(
        Step(index=index, observation=Observation(url="http://x/"), action=action)
        for index, action in enumerate(actions)
    )
    return mug_run(steps=steps, **changes)


@pytest.mark.parametrize(
    ("reward", "success", "score"),
    [(1.0, True, 1.0), (0.51, True, 0.51), (0.5, False, 0.5), (0.0, False, 0.0), (3.0, True, 1.0)],
)
def test_rule_based_is_the_reward_above_a_half(reward: float, success: bool, score: float) -> None:
    assert ruled(mug_run(official_reward=reward)) == Verdict(success=success, score=score)


def test_rule_based_needs_a_reward() -> None:
    with pytest.raises(Skipped, match="no official reward"):
        ruled(mug_run(official_reward=None))


def test_a_run_that_ends_by_itself_without_doubt_succeeds() -> None:
    verdict = guessed(mug_run())
    assert (verdict.success, verdict.repetition, verdict.score) == (True, False, 1.0)


@pytest.mark.parametrize(
    ("changes", "score", "said"),
    [
        ({"truncated": True}, 0.0, "did not finish"),
        ({"terminated": None, "truncated": None, "answer": None}, 0.0, "did not finish"),
        ({"answer": "Unfortunately I could not find it."}, 0.5, "says that it failed"),
        ({"answer": " "}, 0.5, "empty"),
    ],
)
def test_a_doubt_is_no_success(changes: dict[str, object], score: float, said: str) -> None:
    verdict = guessed(mug_run(**changes))
    assert (verdict.success, verdict.score) == (False, score)
    assert said in verdict.reasoning


def test_a_task_declared_infeasible_and_a_page_error_are_doubts() -> None:
    run = acting("click('1')", "report_infeasible('no')")
    assert guessed(run).score == 0.5
    last = Step(index=2, observation=Observation(page_error="500"))
    assert guessed(run.model_copy(update={"steps": (*run.steps, last)})).score == 0.25


def test_circles_are_repetition() -> None:
    assert guessed(acting(*["a", "b"] * 3, None)).repetition is True
    assert guessed(acting(*["a", "b"] * 2, None)).repetition is False
    assert guessed(acting("a", "b", None, truncated=True)).repetition is True


def test_several_commitments_are_a_side_effect() -> None:
    steps = [Step(index=i, reasoning="I submit the form", action=f"click('{i}')") for i in range(2)]
    assert guessed(mug_run(steps=tuple(steps))).side_effect is True
    assert guessed(mug_run(steps=tuple(steps[:1]))).side_effect is False


def test_the_heuristic_needs_a_step() -> None:
    with pytest.raises(Skipped, match="no step"):
        guessed(mug_run(steps=()))


@pytest.mark.parametrize(
    ("sequence", "repeats"),
    [
        ("", 0),
        ("a", 1),
        ("abc", 1),
        ("aa", 2),
        ("xaaay", 3),
        ("ababab", 3),
        ("abcdabcd", 2),
        ("abcdeabcde", 1),
        ("aabb", 2),
    ],
)
def test_cycle_repeats(sequence: str, repeats: int) -> None:
    assert cycle_repeats([(None, letter) for letter in sequence], 4) == repeats


@given(st.text("ab", max_size=30), st.integers(1, 4))
def test_cycle_repeats_is_what_a_search_finds(sequence: str, longest: int) -> None:
    best = max(
        (
            times
            for period in range(1, longest + 1)
            for start in range(len(sequence))
            for times in range(1, len(sequence) + 1)
            if sequence[start : start + period] * times == sequence[start : start + period * times]
        ),
        default=0,
    )
    assert cycle_repeats([(None, letter) for letter in sequence], longest) == min(
        best, len(sequence)
    )
