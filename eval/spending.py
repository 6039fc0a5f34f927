"""What the calls of a judge used: tokens, dollars, seconds, in all and stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eval.scores import Spending, StageLedger
from judges.model import USAGE_FIELDS, Call, Judgment, Usage


def spending(judge: str, judgments: Iterable[Judgment]) -> Spending:
    """The ledger of one judge over all of its judgments, samples and failures included."""
    stages: dict[str, list[Call]] = {}
    for judgment in judgments:
        for call in judgment.calls:
            stages.setdefault(call.stage, []).append(call)
    return Spending(
        judge=judge,
        stages=tuple(StageLedger(stage=name, **_sums(calls)) for name, calls in stages.items()),
        **_sums([call for calls in stages.values() for call in calls]),
    )


def _sums(calls: Sequence[Call]) -> dict[str, Any]:
    prices = [call.cost for call in calls if call.cost is not None]
    # Number by number: a record for every partial sum would take longer than the scoring.
    tokens = {name: sum(getattr(call.usage, name) for call in calls) for name in USAGE_FIELDS}
    return {
        "calls": len(calls),
        "usage": Usage(**tokens),
        "cost": sum(prices) if prices else None,
        "unpriced": len(calls) - len(prices),
        "seconds": sum(call.seconds for call in calls),
    }
