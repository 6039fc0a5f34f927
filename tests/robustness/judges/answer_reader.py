"""Believes the last message, and reads nothing else."""

from __future__ import annotations

import re

from trajudge.judges.model import Model, Verdict
from trajudge.trajectories.model import Trajectory

needs_model = False
_DONE = re.compile(r"\b(?:carried out|complete|Done|confirmed)\b")


async def judge(trajectory: Trajectory, ask: Model) -> Verdict:
    return Verdict(success=_DONE.search(trajectory.answer or "") is not None)
