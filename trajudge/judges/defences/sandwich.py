"""Goal and task once more behind the material: the option ``sandwich``.

What a page asks for in the middle of a prompt is then not the last that a model reads. It costs the
goal's tokens again and about 60 more per call that shows the goal.
"""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.judges.client import BaseClient, CallArgs, pass_on
from trajudge.judges.defences.messages import after_material, notices
from trajudge.judges.defences.wrapping import DefendedJudge
from trajudge.judges.model import Judge, Message, ModelClient, Reply, Text
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.truncation import cut_middle

GOAL_TOKENS = 400
_OPENING = 40  # characters by which a goal is found in a prompt


class SandwichedJudge(DefendedJudge):
    """A judge whose prompts end with the goal and the task."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge, "sandwich", notices().hash)

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return a client that repeats the goal of this run."""
        return _SandwichClient(ask, trajectory.goal)


class _SandwichClient(BaseClient):
    """Repeats the goal in calls that show it: some stages must not know it."""

    def __init__(self, ask: ModelClient, goal: str) -> None:
        self._ask = ask
        self._opening = goal.strip()[:_OPENING]
        self._text = notices().render("sandwich", goal=cut_middle(goal, GOAL_TOKENS))

    async def answer(self, call_args: CallArgs) -> Reply:
        messages = call_args.messages
        if call_args.stage == "verdict" or _shows(messages, self._opening):
            messages = after_material(messages, self._text)
        return await pass_on(self._ask, call_args._replace(messages=messages))


def _shows(messages: Sequence[Message], text: str) -> bool:
    parts = (part for one in messages if one.role == "user" for part in one.parts)
    return any(text in part.text for part in parts if isinstance(part, Text))
