"""The seconds of a run's calls, from its ledger: added up over sessions, as one column."""

from __future__ import annotations

from array import array
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from trajudge.eval.data.index.columns import JudgmentColumns, place_of_call
from trajudge.eval.data.index.keys import column_of
from trajudge.eval.data.index.lines import whole_lines
from trajudge.eval.stats.interval import Floats, Ints
from trajudge.trajectories.stored_lines import KeyFields
from trajudge.trajectories.util.errors import UserError


class LedgerFields(msgspec.Struct, gc=False):
    """What is needed of a line of the ledger."""

    key: KeyFields
    sample: int
    request: str
    seconds: float


_DECODER = msgspec.json.Decoder(LedgerFields)


def with_seconds(judgments: JudgmentColumns, ledger: Path) -> JudgmentColumns:
    """Add what the calls took in all sessions: of a request that a judgment made twice, which was
    answered once, the first has it all. 0 without a ledger.

    A line that a kill tore is left out; raises UserError for a bad one elsewhere.
    """
    seconds = _seconds(ledger, judgments.calls.place, judgments.calls.judgment)
    return replace(judgments, calls=replace(judgments.calls, seconds=seconds))


def _seconds(ledger: Path, places: Ints, judgment: Ints) -> Floats:
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
