"""What the calls of judges used."""

from __future__ import annotations

from trajudge.judges.model import Usage
from trajudge.trajectories.model import Record


class UsageTotals(Record):
    """What calls used. ``cost`` in US dollars over the calls whose price is known, None if there
    is none; ``unpriced`` calls come on top. ``seconds`` is the latency of those that were sent,
    added up."""

    calls: int
    usage: Usage
    cost: float | None
    unpriced: int
    seconds: float = 0.0


class StageUsage(UsageTotals):
    """One stage of a judge: caption, describe, verdict, ..."""

    stage: str


class JudgeUsage(UsageTotals):
    """What one judge used; ``stages`` in the order in which it asks."""

    judge: str
    stages: tuple[StageUsage, ...]
