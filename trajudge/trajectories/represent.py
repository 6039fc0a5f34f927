"""The parts of a trajectory that a judge is shown: the list of steps and the final observation.

AgentRewardBench sections 2 and 4: number, URL, action and reasoning of every step, and the last
observation as accessibility tree, as screenshot, as both, or not at all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from trajudge.trajectories.model import ImageRef, Trajectory


class MissingObservation(Exception):
    """The trajectory lacks the observation that the representation shows.

    It is a property of one trajectory, not a user error: its judgment has status ``skipped``.
    """


class Representation(StrEnum):
    """How the final observation is shown."""

    AXTREE = "axtree"
    SCREENSHOT = "screenshot"
    BOTH = "both"
    NONE = "none"

    @property
    def shows_axtree(self) -> bool:
        return self in (Representation.AXTREE, Representation.BOTH)

    @property
    def shows_screenshot(self) -> bool:
        return self in (Representation.SCREENSHOT, Representation.BOTH)


class StepLine(NamedTuple):
    """One step in a prompt's list; ``number`` counts from 1."""

    number: int
    url: str | None = None
    action: str | None = None
    reasoning: str | None = None


def step_lines(trajectory: Trajectory) -> tuple[StepLine, ...]:
    """List every step, including the last one, which has no action."""
    return tuple(
        StepLine(number, step.observation.url, step.action, step.reasoning)
        for number, step in enumerate(trajectory.steps, start=1)
    )


def final_axtrees(trajectory: Trajectory) -> tuple[str, str | None]:
    """Return the full and the pruned tree of the final observation; one may be missing or empty.

    Raises MissingObservation if both are.
    """
    full, pruned = trajectory.final.axtree, trajectory.final.axtree_pruned
    if not full and not pruned:
        raise MissingObservation(
            f"{trajectory.key}: the final step has no accessibility tree, "
            "which this representation needs"
        )
    return full or pruned or "", (pruned or None) if full else None


def final_screenshot(trajectory: Trajectory) -> ImageRef:
    """Return the reference of the final screenshot. Raises MissingObservation if there is none."""
    if trajectory.final.screenshot is None:
        raise MissingObservation(
            f"{trajectory.key}: the final step has no screenshot, which this representation needs"
        )
    return trajectory.final.screenshot
