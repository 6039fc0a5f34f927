"""Usage and cost of a judge's calls: tokens, dollars, seconds, in all and stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from trajudge.eval.scoring.records import JudgeUsage, StageUsage
from trajudge.judges.model import USAGE_FIELDS, Call, Judgment, Usage


def judge_usage(judge: str, judgments: Iterable[Judgment]) -> JudgeUsage:
    """Add up what one judge used over all of its judgments, samples and failures included."""
    calls: dict[str, list[Call]] = {}
    for judgment in judgments:
        for call in judgment.calls:
            calls.setdefault(call.stage, []).append(call)
    stages = [_stage(name, mine) for name, mine in calls.items()]
    priced = [stage.cost for stage in stages if stage.cost is not None]
    return JudgeUsage(
        judge=judge,
        stages=tuple(stages),
        calls=sum(stage.calls for stage in stages),
        usage=sum((stage.usage for stage in stages), Usage()),
        cost=sum(priced) if priced else None,
        unpriced=sum(stage.unpriced for stage in stages),
        seconds=sum(stage.seconds for stage in stages),
    )


def _stage(name: str, calls: Sequence[Call]) -> StageUsage:
    prices = [call.cost for call in calls if call.cost is not None]
    # Number by number: a record for every partial sum would take longer than the scoring.
    usages = [call.usage for call in calls]
    tokens = {field: sum(map(attrgetter(field), usages)) for field in USAGE_FIELDS}
    return StageUsage(
        stage=name,
        calls=len(calls),
        usage=Usage(**tokens),
        cost=sum(prices) if prices else None,
        unpriced=len(calls) - len(prices),
        seconds=sum(call.seconds for call in calls),
    )
