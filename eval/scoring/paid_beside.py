"""What a run paid beside the cost that its judgments state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.eval.data.index.call_numbers import request_number
from trajudge.eval.data.index.columns import CallColumns
from trajudge.eval.scoring.records import PaidBeside


class _Paid(NamedTuple):
    """What was paid for one request: ``dollars``, and for ``unpriced`` attempts nobody knows."""

    dollars: float
    unpriced: int


def paid_beside(
    payments: Path, calls: CallColumns, waiting: Mapping[str, float] | None = None
) -> PaidBeside:
    """Compare what a run has paid in all of its sessions with what the ``calls`` of its judgments
    state. ``waiting`` are the dollars by request (nan: unknown) of replies whose judgments are
    still to come.

    An attempt that was under way when its process was killed counts with its worst case where
    --max-cost was given, else not.
    """
    paid = _by_request(payments)
    if not paid:
        return PaidBeside()
    numbers, first = np.unique(calls.request, return_index=True)
    held = {request_number(request): cost for request, cost in (waiting or {}).items()}
    held |= dict(zip(numbers.tolist(), calls.cost[first].tolist(), strict=True))
    return paid_in_all(
        _beside(one, held.get(request_number(request))) for request, one in paid.items()
    )


def paid_in_all(parts: Iterable[PaidBeside]) -> PaidBeside:
    """Add up what several runs, or requests, paid beside."""
    dollars = rebate = 0.0
    unpriced = 0
    for part in parts:
        dollars, rebate = dollars + part.dollars, rebate + part.rebate
        unpriced += part.unpriced
    return PaidBeside(dollars=dollars, unpriced=unpriced, rebate=rebate)


def _by_request(payments: Path) -> dict[str, _Paid]:
    from trajudge.judges.engine.store.payments import read_attempts  # noqa: PLC0415 - scores need no engine

    paid: dict[str, _Paid] = {}
    for request, cost in read_attempts(payments).values():
        dollars, unpriced = paid.get(request, _Paid(0.0, 0))
        paid[request] = _Paid(dollars + (cost or 0.0), unpriced + (cost is None))
    return paid


def _beside(paid: _Paid, held: float | None) -> PaidBeside:
    """Return what was paid for a request beside its reply, which cost ``held`` by the judgments
    (nan: unknown); None: no judgment has it."""
    if held is None:
        return PaidBeside(dollars=paid.dollars, unpriced=paid.unpriced)
    if isnan(held):  # the reply is one of the attempts of unknown price
        dollars = paid.dollars if paid.unpriced else 0.0
        return PaidBeside(dollars=dollars, unpriced=max(paid.unpriced - 1, 0))
    if not paid.dollars:
        return PaidBeside(unpriced=max(paid.unpriced - 1, 0))
    more = paid.dollars - held
    return PaidBeside(dollars=max(more, 0.0), unpriced=paid.unpriced, rebate=max(-more, 0.0))
