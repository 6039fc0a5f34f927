"""Judges handed over as functions: their names, and what tells one from another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from trajudge.judges.model import Judge, Model, Verdict
from trajudge.judges.registry import digest, find_judge, given_judges
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.util.errors import UserError

PROMPT = "Did it work?"


def helper() -> str:
    return PROMPT


async def mine(trajectory: Trajectory, ask: Model) -> Verdict:
    """Believes everybody."""
    return Verdict(success=bool(helper()))


def at_least(threshold: float) -> Judge:
    async def judge(trajectory: Trajectory, ask: Model) -> Verdict:
        return Verdict(success=len(trajectory.steps) > threshold)

    return judge


class Thresholded:
    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        return Verdict(success=len(trajectory.steps) > self.threshold)


def test_a_function_is_found_by_its_name_as_long_as_it_is_in_use() -> None:
    with given_judges([mine], needs_model=False, taken=()) as names:
        assert names == ["mine"]
        entry = find_judge("mine")
        assert (entry.is_own, entry.summary) == (True, "Believes everybody.")
    with pytest.raises(UserError, match="no such judge"):
        find_judge("mine")


def test_what_it_needs_may_stand_beside_it() -> None:
    async def seeing(trajectory: Trajectory, ask: Model) -> Verdict:
        return Verdict()

    seeing.needs = Needs(screenshots=last(2))  # type: ignore[attr-defined]
    with given_judges([seeing], needs_model=True, taken=()):
        assert find_judge("seeing").needs == Needs(screenshots=last(2))


def test_two_of_one_name_are_told_apart_by_the_user() -> None:
    with (
        pytest.raises(UserError, match="rename it"),
        given_judges([at_least(1), at_least(2)], needs_model=False, taken=()),
    ):
        pass


@pytest.mark.parametrize("make", [at_least, Thresholded, lambda n: partial(mine, ask=n)])
def test_the_digest_knows_what_a_judge_was_made_with(make: Callable[[float], object]) -> None:
    assert digest(make(1)) == digest(make(1))
    assert digest(make(1)) != digest(make(2))


def test_the_digest_knows_the_prompt_that_a_helper_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(mine)
    monkeypatch.setitem(globals(), "PROMPT", "Did it fail?")
    assert digest(mine) != before
    monkeypatch.undo()
    assert digest(mine) == before


def test_a_function_without_source_has_a_digest() -> None:
    def typed_in(body: str) -> object:
        space: dict[str, object] = {}
        exec(f"async def judge(trajectory, ask):\n    return {body}", space)
        return space["judge"]

    assert digest(typed_in("1 + x")) == digest(typed_in("1 + x"))
    assert digest(typed_in("1 + x")) != digest(typed_in("1 - x"))
    assert digest(typed_in("'yes'")) != digest(typed_in("'no'"))
