"""``calls.jsonl``: the ledger of this machine's calls, a line each: what they took, and which of
them the cache answered. ``judgments.jsonl`` tells nothing of the execution."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from trajudge.eval.data.index.call_ledger import PAYMENTS
from trajudge.judges.model import Judgment

CALLS = "calls.jsonl"

_OF_CALL = ("stage", "request", "rung", "finish", "cost")


def ledger_lines(judgment: Judgment) -> Sequence[bytes]:
    """Encode one line per call of the judgment, newlines included."""
    return [
        orjson.dumps(
            {
                "key": vars(judgment.key),
                "sample": judgment.sample,
                **{name: getattr(call, name) for name in _OF_CALL},
                "seconds": call.seconds,
                "cached": call.cached,
                "usage": call.usage and vars(call.usage),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for call in judgment.calls
    ]


def paid(judgments: Iterable[Judgment]) -> dict[str, float]:
    """Dollars by request, as far as prices are known: a request that several judgments have in
    common was paid once, and one that the cache answered was not paid."""
    calls = (call for judgment in judgments for call in judgment.calls)
    return {call.request: call.cost for call in calls if call.cost and not call.cached}


class RunDollars(NamedTuple):
    """US dollars by request that a run spent in all of its sessions: ``noted`` of its attempts, and
    ``stated`` by its judgments, also of what was not noted here: earlier releases noted less, and a
    batch is noted by the run that it was made for."""

    noted: Mapping[str, float]
    stated: dict[str, float]


def spent_in(folder: Path, judgments: Iterable[Judgment]) -> RunDollars:
    """Read what a run has spent: of judgments, and of what never came to one."""
    from trajudge.judges.engine.store.payments import read_payments  # noqa: PLC0415 - scores need no engine

    return RunDollars(read_payments(folder / PAYMENTS), paid(judgments))


def dollars_in_all(runs: Sequence[RunDollars]) -> float:
    """Add up what runs spent. What several noted of a request, each has paid; what none of them
    noted was paid once, whichever judgments state it."""
    noted = in_all([run.noted for run in runs])
    stated = {request: dollars for run in runs for request, dollars in run.stated.items()}
    return sum(({**stated, **noted}).values())


def in_all(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Add up dollars by request."""
    dollars: dict[str, float] = defaultdict(float)
    for part in parts:
        for request, cost in part.items():
            dollars[request] += cost
    return dict(dollars)
