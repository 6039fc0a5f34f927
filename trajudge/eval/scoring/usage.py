"""What judges' calls used and cost, and what runs paid besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf, nan
from pathlib import Path

import numpy as np

from trajudge.eval.scoring.records import JudgeUsage, StageUsage, UnattributedCost
from trajudge.eval.store.table import NO_REQUEST, CallColumns, JudgmentTable, request_number
from trajudge.judges.engine.budget import read_attempts
from trajudge.judges.model import USAGE_FIELDS, Usage
from trajudge.stats.intervals import Floats, Ints

_TOTALS = (
    *("calls", "unpriced", "cached", "cached_cost", "cached_unpriced", "seconds", "unreported"),
)


def judge_usage(judge: str, judgments: JudgmentTable) -> JudgeUsage:
    """Add up what one judge used over all of its ``judgments``, samples and failures included. A
    request that several judgments have in common was made once and counts once."""
    calls = judgments.calls
    judge_of_call = judgments.judge[calls.judgment]
    mine = np.flatnonzero(judge_of_call == judgments.judges.index(judge))
    stages = tuple(_stages(calls, mine))
    priced = [stage.cost for stage in stages if stage.cost is not None]
    return JudgeUsage(
        judge=judge,
        stages=stages,
        usage=sum((stage.usage for stage in stages), Usage()),
        cost=sum(priced) if priced else None,
        **{name: sum(getattr(stage, name) for stage in stages) for name in _TOTALS},
    )


def _stages(calls: CallColumns, mine: Ints) -> Iterator[StageUsage]:
    """Add up every stage's distinct requests among the calls at ``mine`` (C,), stages in the order
    of their first calls. A request is cached if no call was paid; its seconds are those of the call
    that took longest, for which the others waited. One that is not known is like no other."""
    request = calls.request[mine]
    numbers = np.where(request == NO_REQUEST, -1 - np.arange(len(mine)), request)
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    is_cached = np.bincount(which, weights=~calls.cached[mine], minlength=len(first)) == 0
    longest = np.zeros(len(first))
    np.maximum.at(longest, which, calls.seconds[mine])
    order = np.argsort(first)
    rows = mine[first[order]]
    stage = calls.stage[rows]
    codes, begins = np.unique(stage, return_index=True)
    for code in codes[np.argsort(begins)].tolist():
        here = stage == code
        cost, usage = calls.cost[rows[here]], calls.usage[:, rows[here]]
        cached, priced = is_cached[order[here]], ~np.isnan(cost)
        tokens = dict(zip(USAGE_FIELDS, usage.sum(axis=1).tolist(), strict=True))
        yield StageUsage(
            stage=calls.stages[code],
            calls=len(cost),
            usage=Usage(**tokens),
            unreported=int((~priced & ~usage.any(axis=0)).sum()),
            cost=_sum(cost[priced]) if priced.any() else None,
            unpriced=int((~priced).sum()),
            cached=int(cached.sum()),
            cached_cost=_sum(cost[priced & cached]),
            cached_unpriced=int((~priced & cached).sum()),
            seconds=_sum(longest[order[here]]),
        )


def _sum(values: Floats) -> float:
    """Add up one after the other: another order of additions has other last digits."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def unattributed_cost(
    payments: Path, calls: CallColumns, waiting: Mapping[str, float] | None = None
) -> UnattributedCost:
    """Compare what a run has paid in all of its sessions with what the ``calls`` of its judgments
    state. ``waiting`` are the dollars by request (nan: unknown) of replies whose judgments are
    still to come.

    An attempt that was under way when its process was killed counts with its worst case where
    --max-cost was given, else not.
    """
    attempts = read_attempts(payments).values()
    if not attempts:
        return UnattributedCost()
    costs = np.array([nan if cost is None else cost for _, cost in attempts])
    numbers = np.array([request_number(request) for request, _ in attempts], dtype=np.int64)
    numbers, which = np.unique(numbers, return_inverse=True)
    dollars = np.bincount(which, weights=np.nan_to_num(costs)).astype(float)
    attempts_unpriced = np.bincount(which[np.isnan(costs)], minlength=len(numbers))
    held = _reply_costs(numbers, calls, waiting or {})
    is_held, is_unknown = ~np.isinf(held), np.isnan(held)
    # The reply is one of the attempts: of those of unknown price where it has none itself, or where
    # nothing else was paid.
    among_unpriced = is_unknown | (is_held & (dollars == 0))
    unpriced = np.maximum(attempts_unpriced - among_unpriced, 0)
    reply = np.where(is_held & ~among_unpriced, held, 0.0)
    # What was reserved for it counts, or its price was known when it was paid.
    is_presumed = is_unknown & (attempts_unpriced == 0)
    more = dollars - np.where(is_presumed, dollars, reply)
    return UnattributedCost(
        dollars=float(np.maximum(more, 0.0).sum()),
        unpriced=int(unpriced.sum()),
        rebate=float(np.maximum(-more, 0.0).sum()),
        presumed=float(dollars[is_presumed].sum()),
    )


def paid_in_all(parts: Iterable[UnattributedCost]) -> UnattributedCost:
    """Add up what several runs paid besides."""
    runs = list(parts)
    names = UnattributedCost.model_fields
    return UnattributedCost(**{name: sum(getattr(run, name) for run in runs) for name in names})


def _reply_costs(requests: Ints, calls: CallColumns, waiting: Mapping[str, float]) -> Floats:
    """Return what the replies to requests (R,) cost by their first call, or by ``waiting`` (nan:
    unknown); inf of one whose reply neither has."""
    awaited = np.array([*map(request_number, waiting)], dtype=np.int64)
    # Of several of a request the first counts.
    numbers, first = np.unique(np.concatenate([calls.request, awaited]), return_index=True)
    costs = np.concatenate([calls.cost, np.array([*waiting.values()])])[first]
    if not len(numbers):
        return np.full(len(requests), inf)
    place = np.minimum(np.searchsorted(numbers, requests), len(numbers) - 1)
    return np.where(numbers[place] == requests, costs[place], inf)
