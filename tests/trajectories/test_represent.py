"""Steps and final observation, or a sentence about what is missing."""

from __future__ import annotations

import pytest

from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.represent import (
    MissingObservation,
    Representation,
    StepLine,
    final_axtrees,
    final_screenshot,
    step_lines,
)


def run(*observations: Observation) -> Trajectory:
    steps = tuple(
        Step(index=index, observation=seen, reasoning=f"r{index}", action=f"a{index}")
        for index, seen in enumerate(observations)
    )
    key = TrajectoryKey(benchmark="shop", agent="a", task_id="t")
    return Trajectory(key=key, raw_task_id="t", goal="g", steps=steps)


def test_steps_are_numbered_from_one() -> None:
    assert step_lines(run(Observation(url="u"), Observation())) == (
        StepLine(number=1, url="u", action="a0", reasoning="r0"),
        StepLine(number=2, url=None, action="a1", reasoning="r1"),
    )


@pytest.mark.parametrize(
    ("full", "pruned", "trees"),
    [
        ("f", "p", ("f", "p")),
        ("f", None, ("f", None)),
        (None, "p", ("p", None)),
        ("f", "", ("f", None)),
    ],
)
def test_the_final_trees(full: str | None, pruned: str | None, trees: tuple[str, str]) -> None:
    seen = Observation(axtree=full, axtree_pruned=pruned)
    assert final_axtrees(run(Observation(axtree="first"), seen)) == trees


@pytest.mark.parametrize("seen", [(), (Observation(),), (Observation(axtree="x"), Observation())])
def test_only_the_final_observation_counts(seen: tuple[Observation, ...]) -> None:
    with pytest.raises(MissingObservation, match=r"shop/a/t: the final step has no accessibility"):
        final_axtrees(run(*seen))
    with pytest.raises(MissingObservation, match=r"shop/a/t: the final step has no screenshot"):
        final_screenshot(run(*seen))


def test_the_final_screenshot() -> None:
    ref = ImageRef(data=b"x")
    assert final_screenshot(run(Observation(screenshot=ref))) is ref


def test_what_a_representation_shows() -> None:
    shown = {name.value: (name.shows_axtree, name.shows_screenshot) for name in Representation}
    assert shown == {
        "axtree": (True, False),
        "screenshot": (False, True),
        "both": (True, True),
        "none": (False, False),
    }
