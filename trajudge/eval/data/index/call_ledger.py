"""What a run's ledger tells of its calls: their seconds, and which of them were paid elsewhere."""

from __future__ import annotations

from array import array
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from trajudge.eval.data.index.call_numbers import place_of_call, request_number
from trajudge.eval.data.index.columns import JudgmentColumns
from trajudge.eval.data.index.keys import column_of
from trajudge.eval.data.index.lines import whole_lines
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.trajectories.stored_lines import KeyFields
from trajudge.trajectories.util.errors import UserError

PAYMENTS = "payments.jsonl"


class LedgerFields(msgspec.Struct, gc=False):
    """What is needed of a line of the ledger."""

    key: KeyFields
    sample: int
    request: str
    seconds: float
    cached: bool = False


class _Ledger(NamedTuple):
    """The ledger's lines, added up by the place of their call."""

    places: Ints
    seconds: Floats
    cached: Bools


_DECODER = msgspec.json.Decoder(LedgerFields)


def with_ledger(judgments: JudgmentColumns, ledger: Path) -> JudgmentColumns:
    """Add what the calls took in all sessions: of a request that a judgment made twice, which was
    answered once, the first has it all. A call is cached if every session had its answer from the
    cache and the payments beside the ledger do not hold its request. Without a ledger: 0 seconds,
    and nothing is cached.

    A line that a kill tore is left out; raises UserError for a bad one elsewhere.
    """
    calls = judgments.calls
    lines = _read(ledger) if ledger.is_file() else None
    if lines is None or not len(lines.places):
        zeros = np.zeros(len(calls))
        return replace(judgments, calls=replace(calls, seconds=zeros, cached=zeros.astype(bool)))
    row = np.minimum(np.searchsorted(lines.places, calls.place), len(lines.places) - 1)
    is_told = lines.places[row] == calls.place
    seconds = np.where(is_told, lines.seconds[row], 0.0)
    order = np.lexsort((np.arange(len(calls)), calls.place))
    again = (np.diff(calls.place[order]) == 0) & (np.diff(calls.judgment[order]) == 0)
    seconds[order[1:][again]] = 0.0
    cached = is_told & lines.cached[row]
    if cached.any():  # a session may have paid for a call and ended before its judgment
        cached &= ~np.isin(calls.request, _paid(ledger.with_name(PAYMENTS)))
    return replace(judgments, calls=replace(calls, seconds=seconds, cached=cached))


def _read(ledger: Path) -> _Ledger:
    noted, seconds, paid = array("q"), array("d"), array("d")
    for line in whole_lines(ledger):
        try:
            entry = _DECODER.decode(line.content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UserError(f"{ledger}, line {line.number}: {error}") from error
        noted.append(place_of_call(entry.key, entry.sample, entry.request))
        seconds.append(entry.seconds)
        paid.append(not entry.cached)
    places, which = np.unique(column_of(noted), return_inverse=True)
    added = np.bincount(which, weights=column_of(seconds), minlength=len(places))
    times_paid = np.bincount(which, weights=column_of(paid), minlength=len(places))
    return _Ledger(places, added.astype(float), times_paid == 0)


def _paid(payments: Path) -> Ints:
    """Return the numbers of the requests for which something was paid, or nobody knows what."""
    from trajudge.judges.engine.store.payments import read_attempts  # noqa: PLC0415 - scores need no engine

    paid = {request for request, cost in read_attempts(payments).values() if cost != 0}
    return np.array([*map(request_number, paid)], dtype=np.int64)
