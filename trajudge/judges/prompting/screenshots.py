"""Several screenshots of a run in one prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trajudge.judges.model import Detail, Picture
from trajudge.judges.prompting.pictures import ImageLimits, picture, picture_tokens
from trajudge.trajectories.model import ImageRef, Trajectory
from trajudge.trajectories.needs import spread
from trajudge.trajectories.represent import MissingObservation, final_screenshot


class Shot(NamedTuple):
    """The screenshot of step ``number``, counted from 1."""

    number: int
    image: ImageRef


def recorded(trajectory: Trajectory) -> list[Shot]:
    """Return every screenshot of the run in order. Raises MissingObservation if there is none."""
    shots = [
        Shot(number, step.observation.screenshot)
        for number, step in enumerate(trajectory.steps, start=1)
        if step.observation.screenshot is not None
    ]
    if not shots:
        raise MissingObservation(f"{trajectory.key}: no step has a screenshot")
    return shots


def evenly_spaced(trajectory: Trajectory, count: int) -> list[Shot]:
    """Choose at most ``count`` screenshots at even distances: the final one always, the first one
    where ``count`` is above 1. Raises MissingObservation if there is no final one."""
    final_screenshot(trajectory)
    return spread(recorded(trajectory), count)


def first_that_fit(
    images: Sequence[ImageRef],
    budget: int,
    limits: ImageLimits,
    beside: Sequence[int] = (),
    detail: Detail | None = None,
) -> list[Picture]:
    """Load as many images from the beginning as take at most ``budget`` tokens; ``beside`` are the
    tokens of the text that goes with each. Raises ImageUnreadable."""
    shown: list[Picture] = []
    taken = 0
    for image, text in zip(images, beside or [0] * len(images), strict=True):
        loaded = picture(image, limits, detail)
        tokens = picture_tokens(loaded, limits) + text
        if taken + tokens > budget:
            break
        shown.append(loaded)
        taken += tokens
    return shown
