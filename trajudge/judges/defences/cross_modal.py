"""A check of the record before anybody is asked about it: the option ``cross_modal``.

Where url, title, page, picture and action of a run contradict each other (``record_checks``), no
call is made: the judgment is undecided (``abstain``: no verdict, never a "no"), or the run has
failed (``fail``). All other runs are judged as the judge does.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from trajudge.judges.defences.record_checks import contradictions
from trajudge.judges.defences.wrapping import DefendedJudge
from trajudge.judges.model import Judge, ModelClient, Verdict
from trajudge.trajectories.model import Trajectory

_SHOWN = 3  # contradictions that the reasoning names


class CrossModalJudge(DefendedJudge):
    """A judge that is not asked about a record that contradicts itself."""

    def __init__(self, judge: Judge, then: Literal["abstain", "fail"]) -> None:
        super().__init__(judge, "cross_modal", then)
        self._then = then

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge as the judge does, and raise what it raises, where the record agrees."""
        found = await asyncio.to_thread(lambda: list(contradictions(trajectory)))
        if not found:
            return await self._judge(trajectory, ask)
        reasons = "; ".join(one.text for one in found[:_SHOWN])
        if self._then == "fail":
            return Verdict(
                success=False, score=0.0, reasoning=f"The record is not whole: {reasons}"
            )
        return Verdict(reasoning=f"Undecided, for the record contradicts itself: {reasons}")
