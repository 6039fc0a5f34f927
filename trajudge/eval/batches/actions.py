"""What ``trajudge run batch`` does: tell of batches, cancel them, collect them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from trajudge.eval.batches.payments import note_payments
from trajudge.eval.batches.prices import RunPrices
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.batch.ledger import Ledger, LineCounts, ledger_path
from trajudge.judges.batch.limits import BatchTimes
from trajudge.judges.batch.records import BatchRow
from trajudge.judges.batch.rounds import BatchDesk
from trajudge.judges.batch.service import BatchService
from trajudge.judges.batch.services import batch_service, batching
from trajudge.judges.calls.handle import cache_path
from trajudge.judges.engine import Cache
from trajudge.judges.model import Usage
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of


class BatchAction(Record):
    """What to do with which batches (none named: all that are open)."""

    action: Literal["status", "cancel", "resume"]
    batches: tuple[str, ...] = ()
    cache: str | None = None


def carry_out(action: BatchAction) -> str:
    """Do it, and return the lines to print. Raises UserError for a batch that is not there."""
    path = ledger_path(cache_path(action.cache))
    if not path.is_file():
        return f"no batches: nothing was submitted with {cache_path(action.cache)} as the cache\n"
    ledger = Ledger(path)
    try:
        rows = _chosen(ledger, action)
        if action.action != "status":
            asyncio.run(_at_the_provider(ledger, rows, action))
            rows = [row for row in ledger.batches() if row.id in {one.id for one in rows}]
        return described(ledger, rows)
    finally:
        ledger.close()


def _chosen(ledger: Ledger, action: BatchAction) -> list[BatchRow]:
    known = ledger.batches()
    for name in action.batches:
        if not any(name in (row.id, row.provider_id) for row in known):
            raise UserError(f"no batch {name!r}: see  trajudge run batch status")
    if action.batches:
        return [row for row in known if {row.id, row.provider_id} & {*action.batches}]
    return known if action.action == "status" else [row for row in known if row.is_open]


async def _at_the_provider(ledger: Ledger, rows: Sequence[BatchRow], action: BatchAction) -> None:
    """Cancel the batches, or collect those that have ended."""
    cache = Cache(cache_path(action.cache))
    adapters = {(row.endpoint, row.model): _adapter(row) for row in rows if row.is_open}
    services = {
        (row.endpoint, row.model): batch_service(
            adapters[row.endpoint, row.model], row.model, _folder(row)
        )
        for row in rows
        if row.is_open
    }
    desk = BatchDesk(ledger, cache, services, adapters, RunPrices().dollars, BatchTimes())
    try:
        refused = await _cancel(ledger, services, rows) if action.action == "cancel" else {}
        await desk.look()
        for run in dict.fromkeys(row.run for row in rows):
            note_payments(ledger, run)
        for row in ledger.batches(only_open=True):  # one that had ended is not open any more
            if why := refused.get(row.id):
                raise UserError(f"batch {row.provider_id} is not cancelled: {why}") from why
    finally:
        for adapter in adapters.values():
            await adapter.close()
        await cache.close()


async def _cancel(
    ledger: Ledger, services: Mapping[tuple[str, str], BatchService], rows: Sequence[BatchRow]
) -> dict[str, CallFailed]:
    """Cancel what was submitted; return the batches whose provider refused it, or was not there,
    and why."""
    refused = {}
    for row in rows:
        if row.state != "submitted":
            continue
        try:
            if await services[row.endpoint, row.model].cancel(row.provider_id):
                ledger.release(row.id, "cancelled")
        except CallFailed as error:
            refused[row.id] = error
    return refused


def _adapter(row: BatchRow) -> ProviderAdapter:
    url = row.endpoint if row.endpoint.startswith("http") else None
    adapter, _ = make_adapter(row.model, base_url=url)
    return batching(adapter, row.model)


def _folder(row: BatchRow) -> Path | None:
    return Path(row.provider_id).parent if row.service == "files" else None


def described(ledger: Ledger, rows: Sequence[BatchRow]) -> str:
    """Describe batches, a paragraph each, in the order of their submission."""
    if not rows:
        return "no batches\n"
    prices = RunPrices()
    return "".join(_described(ledger, row, prices) for row in rows)


def _described(ledger: Ledger, row: BatchRow, prices: RunPrices) -> str:
    counts = ledger.counts(row.id)
    lines = ", ".join(f"{one.lines:,} {outcome}" for outcome, one in sorted(counts.items()))
    when = datetime.fromtimestamp(row.intent_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    twice = f", {row.duplicates} answered twice" if row.duplicates else ""
    return (
        f"{row.provider_id or row.id}  {row.state}{f' ({row.note})' if row.note else ''}\n"
        f"  {row.model} at {row.endpoint}, {when}\n"
        f"  {lines}{twice}; {_paid(row, [*counts.values()], prices)}\n"
        f"  run {row.run}\n"
    )


def _paid(row: BatchRow, counts: Sequence[LineCounts], prices: RunPrices) -> str:
    """Say what a batch has cost, or may cost."""
    reserved, paid = sum(one.reserved for one in counts), sum(one.paid for one in counts)
    if row.state != "collected":
        # Nothing is reserved without a price, and where it is 0.
        is_priced = reserved or prices.dollars(row, Usage()) is not None
        return f"at most ${reserved:.4f}" if is_priced else "at an unknown price"
    unpriced = sum(one.unpriced for one in counts)
    known = [f"${paid:.4f} paid"] if paid or not unpriced else []
    unknown = [f"{count_of(unpriced, 'line')} of unknown cost"] if unpriced else []
    return " and ".join([*known, *unknown])
