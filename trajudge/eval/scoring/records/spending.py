"""What the calls of judges used."""

from __future__ import annotations

from trajudge.judges.model import Usage
from trajudge.trajectories.model import Record


class UsageTotals(Record):
    """What calls used, each distinct request once. ``cost`` in US dollars over the calls whose
    cost is known, None if there is none; ``unpriced`` calls come on top, of which the server did
    not report the usage of ``unreported``. ``cached`` calls, worth
    ``cached_cost`` dollars and ``cached_unpriced`` of them nobody knows how many, were not paid by
    this run: the cache had their replies. ``seconds`` is the latency of those that were sent, added
    up."""

    calls: int
    usage: Usage
    cost: float | None
    unpriced: int
    cached: int = 0
    cached_cost: float = 0.0
    cached_unpriced: int = 0
    seconds: float = 0.0
    unreported: int = 0


class PaidBeside(Record):
    """What a run paid beside the cost that its judgments state: ``dollars`` for attempts that
    failed, replies that a later one replaced, replies whose judgment never came and requests that
    several workers made; ``unpriced`` of these attempts come on top. ``rebate`` are the dollars by
    which the judgments' own replies were cheaper, as in batches. ``presumed`` are those
    that count towards --max-cost for replies of unknown cost."""

    dollars: float = 0.0
    unpriced: int = 0
    rebate: float = 0.0
    presumed: float = 0.0


class StageUsage(UsageTotals):
    """One stage of a judge: caption, describe, verdict, ..."""

    stage: str


class JudgeUsage(UsageTotals):
    """What one judge used; ``stages`` in the order in which it asks."""

    judge: str
    stages: tuple[StageUsage, ...]
