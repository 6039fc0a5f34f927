"""Believes what the agent thought, and reads nothing else."""

from __future__ import annotations

import re

from trajudge.judges.model import Model, Verdict
from trajudge.trajectories.model import Trajectory

needs_model = False
_REACHED = re.compile(r"\b(?:is reached|confirmed|completely)\b")


async def judge(trajectory: Trajectory, ask: Model) -> Verdict:
    return Verdict(success=any(_REACHED.search(step.reasoning or "") for step in trajectory.steps))
