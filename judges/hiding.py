"""What the agent says of itself, kept from a judge: the option ``hide``, which every judge takes.

A judge that is shown no reasoning cannot be talked into a verdict by it; ``trajudge robust`` says
what that costs in recall. The agent's own words are replaced in the trajectory before a prompt is
made of it, therefore the judge's prompts stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from trajudge.judges.model import Judge, ModelClient, Verdict
from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.model import Step, Trajectory
from trajudge.trajectories.util.errors import UserError

HIDE = "hide"
PARTS = ("answer", "reasoning")
NOT_SHOWN = "[not shown]"


def hidden_parts(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what ``options`` of the judge ``name`` hide, sorted. Raises UserError."""
    given = options.get(HIDE)
    if given is None:
        return ()
    words = given.split(",") if isinstance(given, str) else given
    parts = tuple(sorted(set(map(str, words)))) if isinstance(words, list | tuple) else ()
    if not parts or not set(parts) <= set(PARTS):
        raise UserError(
            f"judge {name}: {HIDE} = {given!r}: name {', '.join(PARTS)}, or both with a comma"
        )
    return parts


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


class HidingJudge:
    """A judge that is shown runs without some ``parts``; everything else is the judge's own."""

    def __init__(self, judge: Judge, parts: tuple[str, ...]) -> None:
        self._judge = judge
        self._parts = parts
        if own := getattr(judge, "prompt_hash", None):
            self.prompt_hash = sha256(f"{own}\0{HIDE}\0{','.join(parts)}".encode()).hexdigest()

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge as the judge does, and raise what it raises."""
        return await self._judge(without(trajectory, self._parts), ask)

    def __getattr__(self, name: str) -> Any:
        if name == "_judge":  # not set yet: a copy is being made
            raise AttributeError(name)
        return getattr(self._judge, name)
