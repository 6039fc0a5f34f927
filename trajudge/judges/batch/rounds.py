"""Batches under way: submission within the limits, looks at their state, collection."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from trajudge.judges.adapters.errors import CallFailed, NoAccess
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.batch.collection import BatchCollection, LineDollars, collect
from trajudge.judges.batch.engine import BatchCollector
from trajudge.judges.batch.ledger import Ledger
from trajudge.judges.batch.limits import BatchTimes
from trajudge.judges.batch.records import BatchRow
from trajudge.judges.batch.service import BatchService
from trajudge.judges.batch.submission import BatchPlace, reconcile, submit
from trajudge.judges.engine.cache import Cache
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

log = logging.getLogger(__name__)

SLOWER = 1.5  # each look waits so much longer than the one before
SLOWEST = 30.0  # times the first wait
MOST_REFUSALS = 20  # in a row, while nothing is under way

Pause = Callable[[float], Awaitable[None]]
"""Waits so many seconds, or until the user interrupts."""


@dataclass
class BatchDesk:
    """Everything that handles the batches of some models: ``services`` and ``adapters`` by endpoint
    and model. ``progress`` is a line on what is under way."""

    ledger: Ledger
    cache: Cache
    services: Mapping[tuple[str, str], BatchService]
    adapters: Mapping[tuple[str, str], ProviderAdapter]
    dollars: LineDollars
    times: BatchTimes
    progress: str = ""
    refusals: int = 0
    is_full: bool = False
    _through: dict[str, int] = field(default_factory=dict)

    def open_rows(self) -> list[BatchRow]:
        """Return the open batches that can be asked about here."""
        return [
            row
            for row in self.ledger.batches(only_open=True)
            if (service := self.services.get((row.endpoint, row.model)))
            and service.name == row.service
        ]

    def through(self, row: BatchRow) -> int:
        """Return how many of its lines were through at the last look."""
        return self._through.get(row.id, 0)

    async def submit_all(self, collector: BatchCollector, run: str) -> int:
        """Submit what was collected, as far as there is room; return the number of batches. What
        is left over is collected again in the next round. Raises UserError."""
        self.is_full, count = False, 0
        for place, spool in collector.spools.items():
            enqueued = collector.limits[place].enqueued
            for lines in spool.parts():
                tokens = sum(line.tokens for line in lines)
                here = [r.tokens for r in self.open_rows() if (r.endpoint, r.model) == place]
                if enqueued and here and sum(here) + tokens > enqueued:
                    self.is_full = True
                    break
                service = self.services[place]
                if not await submit(service, self.ledger, BatchPlace(*place, run), lines):
                    self._refused()
                    break
                count += 1
                self.refusals = 0
        return count

    async def wait(self, pause: Pause, is_over: Callable[[], bool]) -> list[BatchCollection]:
        """Return what batches bring once all have ended, or the first where others wait for its
        room. Ends early when ``is_over``. Raises UserError."""
        brought: list[BatchCollection] = []
        delay = self.times.poll
        while True:
            await pause(delay)
            if is_over():
                return brought
            brought += await self.look()
            rows = self.open_rows()
            if not rows or (self.is_full and brought):
                return brought
            delay = min(delay * SLOWER, self.times.poll * SLOWEST)

    async def look(self) -> list[BatchCollection]:
        """Look at every open batch once; collect those that have ended. Raises UserError where a
        batch was refused or the key is wrong; a server that fails is asked again later."""
        brought = []
        for row in self.open_rows():
            try:
                collection = await self._look_at(row)
            except NoAccess as error:
                raise UserError(str(error)) from error
            except CallFailed as error:
                log.info("batch %s: %s", row.id, error)
                continue
            if collection is not None:
                brought.append(collection)
        rows = self.open_rows()
        through, lines = sum(map(self.through, rows)), sum(row.lines for row in rows)
        batches = count_of(len(rows), "batch")
        self.progress = f"{batches}: {through:,} of {lines:,} requests through" if rows else ""
        return brought

    async def _look_at(self, row: BatchRow) -> BatchCollection | None:
        place = (row.endpoint, row.model)
        service = self.services[place]
        if row.state == "intent":
            found = await reconcile(service, self.ledger, row, self.times.grace)
            if found is None:
                return None
            row = found
        state = await service.state(row.provider_id)
        self._through[row.id] = state.through
        if state.failed:
            self.ledger.release(row.id, state.failed)
            if not state.is_full:
                raise UserError(f"batch {row.provider_id} failed: {state.failed}")
            self._refused()
            return None
        if not state.ended:
            return None
        adapter = self.adapters[place]
        return await collect(
            row,
            service,
            adapter=adapter,
            ledger=self.ledger,
            cache=self.cache,
            dollars=self.dollars,
        )

    def _refused(self) -> None:
        """Count a submission for which the provider had no room. Raises UserError if it never has,
        though nothing is under way."""
        self.is_full = True
        self.refusals = 0 if self.open_rows() else self.refusals + 1
        if self.refusals >= MOST_REFUSALS:
            raise UserError(
                "the provider has no room for a batch though none is under way: make smaller ones "
                "with  --batch-options tokens=N  or try later; nothing that was answered is lost"
            )
