"""Usage and cost of a judge's calls: tokens, dollars, seconds, in all and stage by stage."""

from __future__ import annotations

import numpy as np

from trajudge.eval.data.index.columns import CallColumns, JudgmentColumns
from trajudge.eval.scoring.records import JudgeUsage, StageUsage
from trajudge.eval.stats.interval import Bools, Floats
from trajudge.judges.model import USAGE_FIELDS, Usage


def judge_usage(judge: str, judgments: JudgmentColumns) -> JudgeUsage:
    """Add up what one judge used over all of its judgments, samples and failures included."""
    calls = judgments.calls
    codes, first = np.unique(calls.stage, return_index=True)
    stages = [
        _stage(calls.stages[code], calls, calls.stage == code)
        for code in codes[np.argsort(first)].tolist()
    ]
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


def _stage(name: str, calls: CallColumns, mine: Bools) -> StageUsage:
    cost = calls.cost[mine]
    prices = cost[~np.isnan(cost)]
    tokens = [int(column[mine].sum()) for column in calls.usage]
    return StageUsage(
        stage=name,
        calls=len(cost),
        usage=Usage(**dict(zip(USAGE_FIELDS, tokens, strict=True))),
        cost=_sum(prices) if len(prices) else None,
        unpriced=len(cost) - len(prices),
        seconds=_sum(calls.seconds[mine]),
    )


def _sum(values: Floats) -> float:
    """Add up one after the other, as ever: another order of additions has other last digits."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0
