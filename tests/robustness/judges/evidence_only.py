"""Reads pages and actions, never a word of the agent: its verdict is a fixed function of them."""

from __future__ import annotations

from hashlib import sha256

from trajudge.judges.model import Model, Verdict
from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.model import Trajectory

needs_model = False


async def judge(trajectory: Trajectory, ask: Model) -> Verdict:
    seen = [
        (step.observation.url, step.observation.axtree, step.action)
        for step in trajectory.steps
        if message_to_user(step.action) is None
    ]
    return Verdict(success=sha256(repr(seen).encode()).digest()[0] < 100)
