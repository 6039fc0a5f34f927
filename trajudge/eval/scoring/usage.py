"""Usage and cost of a judge's calls: tokens, dollars, seconds, in all and stage by stage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trajudge.eval.data.index.call_numbers import NO_REQUEST
from trajudge.eval.data.index.columns import CallColumns, JudgmentColumns
from trajudge.eval.scoring.records import JudgeUsage, StageUsage
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.judges.model import USAGE_FIELDS, Usage


class _Requests(NamedTuple):
    """Distinct requests, (R,), in the order of their first calls. ``cached`` if no call was paid;
    ``seconds`` of the call that took longest, for the others waited for it."""

    stage: Ints
    cost: Floats
    cached: Bools
    seconds: Floats
    usage: Ints


def judge_usage(judge: str, judgments: JudgmentColumns) -> JudgeUsage:
    """Add up what one judge used over all of its judgments, samples and failures included. A
    request that several judgments have in common was made once and counts once."""
    calls = judgments.calls
    requests = _requests(calls)
    codes, first = np.unique(requests.stage, return_index=True)
    stages = [
        _stage(calls.stages[code], requests, requests.stage == code)
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
        cached=sum(stage.cached for stage in stages),
        cached_cost=sum(stage.cached_cost for stage in stages),
        cached_unpriced=sum(stage.cached_unpriced for stage in stages),
        seconds=sum(stage.seconds for stage in stages),
        unreported=sum(stage.unreported for stage in stages),
    )


def _requests(calls: CallColumns) -> _Requests:
    """Put the calls of a request together; one whose request is not known is like no other."""
    alone = -1 - np.arange(len(calls))
    numbers = np.where(calls.request == NO_REQUEST, alone, calls.request)
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    paid = np.bincount(which, weights=~calls.cached, minlength=len(first))
    seconds = np.zeros(len(first))
    np.maximum.at(seconds, which, calls.seconds)
    rows = first[order]
    return _Requests(
        stage=calls.stage[rows],
        cost=calls.cost[rows],
        cached=paid[order] == 0,
        seconds=seconds[order],
        usage=calls.usage[:, rows],
    )


def _stage(name: str, requests: _Requests, mine: Bools) -> StageUsage:
    cost, cached = requests.cost[mine], requests.cached[mine]
    is_priced = ~np.isnan(cost)
    tokens = [int(column[mine].sum()) for column in requests.usage]
    return StageUsage(
        stage=name,
        calls=len(cost),
        usage=Usage(**dict(zip(USAGE_FIELDS, tokens, strict=True))),
        unreported=int((~is_priced & ~requests.usage[:, mine].any(axis=0)).sum()),
        cost=_sum(cost[is_priced]) if is_priced.any() else None,
        unpriced=int((~is_priced).sum()),
        cached=int(cached.sum()),
        cached_cost=_sum(cost[is_priced & cached]),
        cached_unpriced=int((~is_priced & cached).sum()),
        seconds=_sum(requests.seconds[mine]),
    )


def _sum(values: Floats) -> float:
    """Add up one after the other, as ever: another order of additions has other last digits."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0
