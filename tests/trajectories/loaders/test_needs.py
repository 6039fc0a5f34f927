"""What a loader leaves alone where no screenshot is asked for."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders.mutated_files import MADE
from trajudge.trajectories.loaders import KINDS, loader
from trajudge.trajectories.model import ImageRef, Trajectory, accept_all
from trajudge.trajectories.needs import EVERYTHING, NO_NEEDS, Needs

TAKING = [kind for kind in KINDS if "needs" in signature(loader(kind).load).parameters]


def _load(kind: str, path: Path, needs: Needs) -> list[Trajectory]:
    load: Any = loader(kind).load
    return [one for one in load(path, accept_all, needs) if isinstance(one, Trajectory)]


def _without_pictures(run: Trajectory) -> dict[str, Any]:
    screenshot = {"observation": {"screenshot"}}
    hidden: Any = {"goal_images": True, "metadata": {"warnings"}, "steps": {"__all__": screenshot}}
    return run.model_dump(exclude=hidden)


def _shots(run: Trajectory) -> list[ImageRef | None]:
    return [step.observation.screenshot for step in run.steps]


def test_every_loader_of_pictures_takes_needs() -> None:
    """Those that do not read no picture at all."""
    assert set(KINDS) - {*TAKING} == {"agentrewardbench-text", "browser-use-answers", "toolcalls"}


@pytest.mark.parametrize("kind", sorted({*TAKING} & {*MADE}))
def test_a_run_read_without_screenshots_differs_in_them_alone(kind: str, tmp_path: Path) -> None:
    """The same steps, and a mark for each picture that was recorded: never "there was none"."""
    MADE[kind](tmp_path)
    whole, bare = (_load(kind, tmp_path, needs) for needs in (EVERYTHING, NO_NEEDS))
    assert whole and [*map(_without_pictures, bare)] == [*map(_without_pictures, whole)]
    recorded = [shot for run in whole for shot in _shots(run) if shot]
    # The made files of AgentRewardBench name screenshots that are not there.
    assert recorded and (kind == "agentrewardbench" or any(not shot.problem for shot in recorded))
    for run, same in zip(whole, bare, strict=True):
        for one, other in zip(_shots(run), _shots(same), strict=True):
            assert (one is None) is (other is None)
            assert other is None or (other.path, other.data) == (None, None)
            assert other is None or "not read" in str(other.problem)
