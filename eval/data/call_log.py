"""``calls.jsonl``: the ledger of this machine's calls, a line each: what they took, and which of
them the cache answered. ``judgments.jsonl`` tells nothing of the execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

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
                "usage": vars(call.usage),
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


def spent_in(folder: Path, judgments: Iterable[Judgment]) -> dict[str, float]:
    """Dollars by request that a run has spent in all of its sessions: ``paid``, and what never came
    to a judgment."""
    from trajudge.judges.engine.store.payments import read_payments  # noqa: PLC0415 - scores need no engine

    return paid(judgments) | read_payments(folder / PAYMENTS)
