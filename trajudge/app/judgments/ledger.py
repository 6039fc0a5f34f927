"""The calls of a judgment with what this machine's ledger knows of them."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from trajudge.eval.store.run_folder import CALLS
from trajudge.judges.model import Call
from trajudge.util.files import UnsafeFile, open_regular


class CallTime(NamedTuple):
    """``seconds`` of the call itself; ``cached``: no session of this run made it, the cache had
    it."""

    seconds: float
    cached: bool


def call_times(folder: Path, calls: Sequence[Call]) -> list[CallTime | None]:
    """Find each call in the ledger of a run's folder; None for one that is not there."""
    try:
        with open_regular(folder / CALLS) as file:
            if not file.seek(0, 2):
                return [None] * len(calls)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as ledger:
                return [_time(ledger, call.request) for call in calls]
    except (OSError, UnsafeFile, ValueError):
        return [None] * len(calls)


def _time(ledger: mmap.mmap, request: str) -> CallTime | None:
    """Return the call that was made; where it never was, that the cache answered."""
    mark = orjson.dumps({"request": request})[1:-1]
    at, cached = ledger.find(mark), None
    while at >= 0:
        start, end = ledger.rfind(b"\n", 0, at) + 1, ledger.find(b"\n", at)
        end = end if end >= 0 else len(ledger)
        try:
            line = orjson.loads(ledger[start:end])
            time = CallTime(float(line["seconds"]), bool(line["cached"]))
        except (ValueError, KeyError, TypeError):
            time = None
        if time is not None and not time.cached:
            return time
        cached = cached or time
        at = ledger.find(mark, end)
    return cached
