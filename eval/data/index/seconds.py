"""The seconds of a run's calls, from its ledger: added up over sessions, as one column."""

from __future__ import annotations

from array import array
from pathlib import Path

import msgspec
import numpy as np

from trajudge.eval.data.index.keys import KeyLike, column_of
from trajudge.eval.data.index.lines import KeyFields, whole_lines
from trajudge.eval.stats.interval import Floats, Ints
from trajudge.trajectories.util.errors import UserError


class LedgerFields(msgspec.Struct, gc=False):
    """What is needed of a line of the ledger."""

    key: KeyFields
    sample: int
    request: str
    seconds: float


_DECODER = msgspec.json.Decoder(LedgerFields)


def place_of_call(key: KeyLike, sample: int, request: str) -> int:
    """Return the number of a judgment's calls to one request, good in this process: of 64 bits, so
    that two of a million calls share one in one run of ten million."""
    return hash((key.benchmark, key.agent, key.task_id, key.attempt, sample, request))


def call_seconds(ledger: Path, places: Ints, judgment: Ints) -> Floats:
    """Return what calls took in all sessions, (C,): of a request that a judgment made twice, which
    was answered once, the first has it all. 0 without a ledger.

    ``places`` (C,) are the calls' by ``place_of_call``, ``judgment`` (C,) the rows that they belong
    to. A line that a kill tore is left out; raises UserError for a bad one elsewhere.
    """
    if not ledger.is_file():
        return np.zeros(len(places))
    noted, seconds = array("q"), array("d")
    for line in whole_lines(ledger):
        try:
            entry = _DECODER.decode(line.content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UserError(f"{ledger}, line {line.number}: {error}") from error
        noted.append(place_of_call(entry.key, entry.sample, entry.request))
        seconds.append(entry.seconds)
    known, which = np.unique(column_of(noted), return_inverse=True)
    if not len(known):
        return np.zeros(len(places))
    added = np.bincount(which, weights=column_of(seconds), minlength=len(known))
    found = np.minimum(np.searchsorted(known, places), len(known) - 1)
    took = np.where(known[found] == places, added[found], 0.0)
    order = np.lexsort((np.arange(len(places)), places))
    again = (np.diff(places[order]) == 0) & (np.diff(judgment[order]) == 0)
    took[order[1:][again]] = 0.0
    return took
