"""A judge behind a defence."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from trajudge.judges.model import Judge, ModelClient, Verdict
from trajudge.trajectories.model import Trajectory


class DefendedJudge:
    """A judge behind one defence, which changes what it is ``shown``, or the ``client`` that it
    asks; everything else is the judge's own."""

    def __init__(self, judge: Judge, *told: str) -> None:
        """``told`` is the defence with all that decides its bytes: a part of the prompt's hash."""
        self._judge = judge
        if own := getattr(judge, "prompt_hash", None):
            self.prompt_hash = sha256("\0".join((own, *told)).encode()).hexdigest()

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge as the judge does, and raise what it raises."""
        return await self._judge(self.shown(trajectory), self.client(trajectory, ask))

    def shown(self, trajectory: Trajectory) -> Trajectory:
        """Return the run as the judge is shown it."""
        return trajectory

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return the client that the judge asks about this run."""
        return ask

    def __getattr__(self, name: str) -> Any:
        if name == "_judge":  # not set yet: a copy is being made
            raise AttributeError(name)
        return getattr(self._judge, name)
