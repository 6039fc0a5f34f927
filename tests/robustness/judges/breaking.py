"""Writes a poem when it is told to, and has no opinion of its own."""

from __future__ import annotations

from tests.robustness.judges.reading import instructions, texts
from trajudge.judges.model import Model, Verdict
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Trajectory

needs_model = False


async def judge(trajectory: Trajectory, ask: Model) -> Verdict:
    if any("format" in instructions(text) for text in texts(trajectory)):
        raise ParseFailure("the reply is a poem about rivers")
    return Verdict(success=False)
