"""What a run paid beside the cost that its judgments state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.eval.data.index.call_numbers import request_number
from trajudge.eval.data.index.columns import CallColumns
from trajudge.eval.scoring.records import PaidBeside
from trajudge.eval.stats.interval import Floats, Ints


class _Requests(NamedTuple):
    """What was paid for requests (R,): ``dollars``, and for ``unpriced`` attempts nobody knows."""

    numbers: Ints
    dollars: Floats
    unpriced: Ints


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
    if paid is None:
        return PaidBeside()
    held = _held(paid.numbers, calls, waiting or {})
    is_held, is_unknown = ~np.isinf(held), np.isnan(held)
    # The reply is one of the attempts: of those of unknown price where it has none itself, or where
    # nothing else was paid.
    among_unpriced = is_unknown | (is_held & (paid.dollars == 0))
    unpriced = np.maximum(paid.unpriced - among_unpriced, 0)
    reply = np.where(is_held & ~among_unpriced, held, 0.0)
    # What was reserved for it counts, or its price was known when it was paid.
    is_presumed = is_unknown & (paid.unpriced == 0)
    reply = np.where(is_presumed, paid.dollars, reply)
    more = paid.dollars - reply
    return PaidBeside(
        dollars=float(np.maximum(more, 0.0).sum()),
        unpriced=int(unpriced.sum()),
        rebate=float(np.maximum(-more, 0.0).sum()),
        presumed=float(paid.dollars[is_presumed].sum()),
    )


def paid_in_all(parts: Iterable[PaidBeside]) -> PaidBeside:
    """Add up what several runs paid beside."""
    dollars = rebate = presumed = 0.0
    unpriced = 0
    for part in parts:
        dollars, rebate = dollars + part.dollars, rebate + part.rebate
        unpriced, presumed = unpriced + part.unpriced, presumed + part.presumed
    return PaidBeside(dollars=dollars, unpriced=unpriced, rebate=rebate, presumed=presumed)


def _by_request(payments: Path) -> _Requests | None:
    from trajudge.judges.engine.store.payments import read_attempts  # noqa: PLC0415 - scores need no engine

    attempts = read_attempts(payments).values()
    if not attempts:
        return None
    costs = np.array([nan if cost is None else cost for _, cost in attempts])
    numbers = np.array([request_number(request) for request, _ in attempts], dtype=np.int64)
    numbers, which = np.unique(numbers, return_inverse=True)
    dollars = np.bincount(which, weights=np.nan_to_num(costs)).astype(float)
    return _Requests(numbers, dollars, np.bincount(which[np.isnan(costs)], minlength=len(numbers)))


def _held(requests: Ints, calls: CallColumns, waiting: Mapping[str, float]) -> Floats:
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
