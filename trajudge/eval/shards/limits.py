"""Rates and dollars of a sharded run: what all its workers may send and spend, leased in parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256

from trajudge.eval.shards.objects.store import ObjectStore, updated
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.engine.limiting.leased import LeasedRate, RateWindow
from trajudge.judges.engine.limiting.limiter import Limiter
from trajudge.judges.engine.limiting.rates import SHARE

DOLLARS = "limits/dollars.json"
PART = 0.01  # of the budget that one lease holds


class SharedLimits:
    """The limits of a run, for one of its workers: ``--rpm`` and ``--tpm`` per endpoint,
    ``--max-cost`` over everything. ``now`` tells the time in seconds since 1970."""

    def __init__(
        self,
        store: ObjectStore,
        worker: str,
        calls: CallConfig,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._worker = worker
        self._calls = calls
        self._now = now
        self.leased = 0.0

    def limiter(self, endpoint: str) -> Limiter:
        """Make what admits the calls of this worker to an endpoint."""
        place = sha256(endpoint.encode()).hexdigest()[:16]
        return Limiter(
            concurrency=self._calls.concurrency,
            rpm=self._rate(f"limits/{place}-requests.json", self._calls.rpm),
            tpm=self._rate(f"limits/{place}-tokens.json", self._calls.tpm),
        )

    async def more_dollars(self, need: float) -> float:
        """Lease at least ``need`` dollars of ``--max-cost``; return how many, 0 if so many are not
        left. Raises UserError."""
        got = await asyncio.to_thread(self._lease_dollars, need)
        self.leased += got
        return got

    def give_back(self, dollars: float) -> None:
        """Give leased dollars back that were not spent. Raises UserError."""
        if self._calls.max_cost is None or dollars <= 0:
            return
        self.leased -= dollars
        updated(self._store, DOLLARS, partial(_added, self._worker, -dollars))

    def _rate(self, name: str, per_minute: float | None) -> LeasedRate | None:
        if per_minute is None:
            return None
        return LeasedRate(per_minute, partial(self._lease_rate, name, per_minute))

    async def _lease_rate(self, name: str, per_minute: float, units: float) -> RateWindow:
        return await asyncio.to_thread(self._window, name, per_minute, units)

    def _window(self, name: str, per_minute: float, units: float) -> RateWindow:
        """Take the next ``units`` of the rate: the generic cell rate algorithm over all workers."""
        begins = now = self._now()

        def take(held: dict[str, float]) -> dict[str, float]:
            nonlocal begins, now
            now = self._now()
            begins = max(held.get("due", 0.0), now)
            return {"due": begins + units * 60.0 / (per_minute * SHARE)}

        updated(self._store, name, take)
        return RateWindow(units, begins - now)

    def _lease_dollars(self, need: float) -> float:
        limit = self._calls.max_cost or 0.0
        got = 0.0

        def take(held: dict[str, float]) -> dict[str, float] | None:
            nonlocal got
            left = limit - sum(held.values())
            got = min(left, max(need, PART * limit))
            if got < need:
                got = 0.0
                return None
            return _added(self._worker, got, held)

        updated(self._store, DOLLARS, take)
        return got


def _added(worker: str, dollars: float, held: dict[str, float]) -> dict[str, float]:
    return {**held, worker: held.get(worker, 0.0) + dollars}
