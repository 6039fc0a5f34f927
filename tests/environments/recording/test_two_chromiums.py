"""A run is the same in the shell that is looked for first and in a Chromium with windows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.environments.cases import agent, job, sound
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.chromium import browser
from trajudge.environments.recording import recorder
from trajudge.environments.recording.episode import Recorded
from trajudge.trajectories.model import Step
from trajudge.util.machine import CHROMIUMS

pytestmark = pytest.mark.browser

JOBS = [
    job(sound("spent", profile=2, theme=3, ui=2), agent(Behaviour.ORACLE)),
    job(sound("image-fee", "press", ui=0), agent(Behaviour.ORACLE)),
    job(sound("unwish"), agent(Behaviour.CHEATS)),
]


def recorded_in(program: Path, monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    """Record the jobs in ``program``."""
    with monkeypatch.context() as changed:
        changed.setattr(browser, "find_chromium", lambda: str(program))
        with recorder.open_recorder(seed=0) as running:
            return [running.record(each) for each in JOBS]


def without_picture(step: Step) -> dict[str, Any]:
    """What a step says in words."""
    return step.model_dump(exclude={"observation": {"screenshot"}})


def pixels(step: Step) -> np.ndarray:
    """The step's picture: height × width × channels, as the browser drew it."""
    shown = step.observation.screenshot
    assert shown is not None
    assert shown.data is not None
    return np.asarray(Image.open(io.BytesIO(shown.data)))


def test_the_shell_records_what_chromium_records(
    chromium: Path, whole_chromium: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chromium.name == CHROMIUMS[0]
    shell, whole = (recorded_in(each, monkeypatch) for each in (chromium, whole_chromium))
    for one, other in zip(shell, whole, strict=True):
        assert one.finding == other.finding
        assert one.facts == other.facts
        ours, theirs = one.trajectory.steps, other.trajectory.steps
        assert len(ours) == len(theirs) > 1
        for mine, its in zip(ours, theirs, strict=True):
            assert without_picture(mine) == without_picture(its)
            assert np.array_equal(pixels(mine), pixels(its))
