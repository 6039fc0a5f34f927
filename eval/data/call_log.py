"""``calls.jsonl``: the ledger of this machine's calls, a line each: what they took, and which of
them the cache answered. ``judgments.jsonl`` tells nothing of the execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import orjson

from trajudge.judges.model import Judgment

CALLS = "calls.jsonl"
PAYMENTS = "payments.jsonl"

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
    common was paid once, and one that the cache answered was not paid.

    Which ones it answered is known of judgments made by this process. Of those read from a folder
    it is not, and all count: what --max-cost allows is then rather too little than too much.
    """
    calls = (call for judgment in judgments for call in judgment.calls)
    return {call.request: call.cost for call in calls if call.cost and not call.cached}


def spent_in(folder: Path, judgments: Iterable[Judgment]) -> dict[str, float]:
    """Dollars by request that a run has spent in all of its sessions: ``paid``, and what never came
    to a judgment."""
    from trajudge.judges.engine.store.payments import read_payments  # noqa: PLC0415 - scores need no engine

    return paid(judgments) | read_payments(folder / PAYMENTS)


def paid_beside(folder: Path, lines: Iterable[bytes]) -> float:
    """Return the dollars that a run has paid in all of its sessions for what its judgments do not
    hold: attempts that failed, and replies that a later one replaced. ``lines`` are those of its
    judgments.

    An attempt that was under way when its process was killed counts with its worst case where
    --max-cost was given, else not.
    """
    from trajudge.judges.engine.store.payments import read_payments  # noqa: PLC0415 - scores need no engine

    payments = read_payments(folder / PAYMENTS)
    if not payments:
        return 0.0
    held: dict[str, float] = {}
    for line in lines:
        for call in _COSTS.decode(line).calls:
            held[call.request] = call.cost or 0.0
    beside = (cost - held.get(request, 0.0) for request, cost in payments.items())
    return sum(cost for cost in beside if cost > 0)


class _CallCost(msgspec.Struct, gc=False):
    request: str
    cost: float | None = None


class _CallCosts(msgspec.Struct, gc=False):
    """What is needed of a judgment's line."""

    calls: list[_CallCost] = []


_COSTS = msgspec.json.Decoder(_CallCosts)
