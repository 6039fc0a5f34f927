"""What the agent says of itself, kept from a judge: the option ``hide``.

A judge that is shown no reasoning cannot be talked into a verdict by it; ``trajudge robust`` says
what that costs in recall.
"""

from __future__ import annotations

from trajudge.judges.defences.wrapping import DefendedJudge
from trajudge.judges.model import Judge
from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.model import Step, Trajectory

NOT_SHOWN = "[not shown]"


class HidingJudge(DefendedJudge):
    """A judge that is shown runs without some ``parts``."""

    def __init__(self, judge: Judge, parts: tuple[str, ...]) -> None:
        super().__init__(judge, "hide", ",".join(parts))
        self._parts = parts

    def shown(self, trajectory: Trajectory) -> Trajectory:
        """Return the run without the hidden parts."""
        return without(trajectory, self._parts)


def without(trajectory: Trajectory, parts: tuple[str, ...]) -> Trajectory:
    """Return the run without what the agent thought, or told the user, in any step."""
    answer = trajectory.answer
    if "answer" in parts and answer is not None:
        answer = NOT_SHOWN
    steps = tuple(_without(step, parts) for step in trajectory.steps)
    return trajectory.model_copy(update={"answer": answer, "steps": steps})


def _without(step: Step, parts: tuple[str, ...]) -> Step:
    update: dict[str, object] = {}
    if "reasoning" in parts and step.reasoning is not None:
        update["reasoning"] = NOT_SHOWN
    if "answer" in parts and message_to_user(step.action) is not None:
        update["action"] = f"send_msg_to_user({NOT_SHOWN!r})"
    return step.model_copy(update=update) if update else step
