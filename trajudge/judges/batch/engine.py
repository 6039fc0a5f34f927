"""Engine of a run in batches: it answers from the cache, and collects what the cache lacks.

A judge whose call is collected goes no further: its judgment is cancelled, and made again from its
start when the replies are there, which then come from the cache. A judge that asks three times,
each time by the reply before, is complete after three rounds.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

from trajudge.judges.adapters.errors import CallFailed, NoAccess, Retryable
from trajudge.judges.batch.collection import BatchCollection
from trajudge.judges.batch.files import Spool
from trajudge.judges.batch.records import BatchLimits, BatchLine
from trajudge.judges.batch.service import BatchService
from trajudge.judges.batch.services import batching
from trajudge.judges.engine import Engine, EngineReply, Engines, Estimate
from trajudge.judges.engine.budget import tokens_of
from trajudge.judges.model import Request, Usage
from trajudge.util.errors import UserError

T = TypeVar("T")

BatchDollars = Callable[[str, Usage], float]
"""US dollars of a model's usage in a batch, 0 if its price is not known."""

ATTEMPTS = 5  # of a request in one session, before its failure is a judgment's
QUIET = 0.05  # seconds without another call, after which a judgment is taken to wait for replies

_scope: ContextVar[_ParkingScope] = ContextVar("judgment")


class _ParkingScope:
    """The calls of one judgment that wait for a later round."""

    def __init__(self) -> None:
        self.count = 0
        self.parked = asyncio.Event()

    async def park(self) -> None:
        """Wait until the judgment is cancelled."""
        self.count += 1
        self.parked.set()
        await asyncio.get_running_loop().create_future()


async def until_parked(judging: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    """Run a judgment until it ends (its result) or waits for replies of a later round (None).

    Calls that a judge makes side by side are collected together: after the first the judgment goes
    on until it has made no other for ``QUIET`` seconds.
    """
    scope = _ParkingScope()
    token = _scope.set(scope)
    task = asyncio.create_task(judging())
    _scope.reset(token)
    parked = asyncio.create_task(scope.parked.wait())
    try:
        await asyncio.wait({task, parked}, return_when=asyncio.FIRST_COMPLETED)
        known = 0
        while not task.done() and known != scope.count:
            known = scope.count
            await asyncio.wait({task}, timeout=QUIET)
        return task.result() if task.done() else None
    finally:
        parked.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


@dataclass
class BatchCollector:
    """What the engines of a run know together. ``limit`` are the dollars that may be reserved and
    paid in all (None: any number); ``services`` and ``limits`` by endpoint and model."""

    services: Mapping[tuple[str, str], BatchService]
    limits: Mapping[tuple[str, str], BatchLimits]
    dollars: BatchDollars
    limit: float | None = None
    spent: float = 0.0
    spools: dict[tuple[str, str], Spool] = field(default_factory=dict)
    under_way: Collection[str] = ()
    awaited: set[str] = field(default_factory=set)
    collected: set[str] = field(default_factory=set)
    failed: dict[str, CallFailed] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    attempts: Counter[str] = field(default_factory=Counter)
    deferred: float = 0.0
    correction: float = 1.0

    def begin_round(self, under_way: Collection[str], spent: float) -> None:
        """Forget the lines of the round before; ``under_way`` are requests in open batches, those
        that the round needs become ``awaited``."""
        for spool in self.spools.values():
            spool.close()
        self.spools = {}
        self.under_way, self.spent, self.deferred = under_way, spent, 0.0
        self.awaited = set()

    @property
    def planned(self) -> int:
        """Requests that wait for their submission."""
        return sum(len(spool.requests) for spool in self.spools.values())

    def take(self, engine: Engine, request: Request, expected: Usage, worst: Usage) -> None:
        """Make a line of a request, unless it is one already or there is no money for it."""
        place = (engine.adapter.endpoint, request.model)
        spool = self.spools.setdefault(place, Spool(self.limits[place]))
        if request.hash in self.under_way:
            self.awaited.add(request.hash)
            return
        if request.hash in spool.requests:
            return
        as_cached = worst.model_copy(update={"input": 0, "cache_write": worst.input})
        dearest = max(self.dollars(request.model, one) for one in (worst, as_cached))
        reserved = dearest * self.correction
        planned = sum(one.reserved for one in self.spools.values())
        if self.limit is not None and self.spent + planned + reserved > self.limit:
            self.deferred = max(self.deferred, reserved)
            return
        made = batching(engine.adapter, request.model).batch_body(request)
        line = self.services[place].line(request.hash, made.body)
        tokens = tokens_of(expected)
        spool.add(BatchLine(request.hash, line, made.parameters, tokens, reserved))

    def note(self, collection: BatchCollection) -> None:
        """Take in what a batch brought: where a line cost more than was reserved for it, more is
        reserved for all that follow. Raises UserError where no request can succeed."""
        if collection.overrun > 1:
            if self.limit is not None and self.correction == 1:
                sys.stderr.write(
                    f"warning: a line of a batch cost {collection.overrun:.1f} times what was "
                    "reserved for it: its server ignores --max-tokens, or counts more tokens: as "
                    "much more is reserved for every line that follows\n"
                )
            self.correction *= collection.overrun
        self.collected |= collection.answered
        self.unanswered -= collection.answered
        for request, error in collection.failed.items():
            self.attempts[request] += error is not None
            if isinstance(error, NoAccess):
                raise UserError(str(error))
            if isinstance(error, Retryable):
                self.unanswered.add(request)
            if error is not None and (
                not isinstance(error, Retryable) or self.attempts[request] >= ATTEMPTS
            ):
                self.failed[request] = error


class CollectingEngine(Engine):
    """An engine that sends nothing but what the collector lets it ask live."""

    def __init__(self, live: Engine, collector: BatchCollector) -> None:
        super().__init__(
            live.adapter,
            cache=live.cache,
            limiter=live.limiter,
            retry=live.retry,
            budget=live.budget,
        )
        self.sent = live.sent
        self._collector = collector

    async def ask(
        self,
        request: Request,
        *,
        refresh: bool = False,
        since: float = inf,
        estimate: Estimate | None = None,
        worst_case: Estimate | None = None,
    ) -> EngineReply:
        """Return the reply if it is in the cache; else collect the request and never return.

        Raises the cached failure, and that of a request that failed in batches.
        """
        collector = self._collector
        if request.hash in collector.live:
            return await super().ask(
                request,
                refresh=refresh,
                since=since,
                estimate=estimate,
                worst_case=worst_case,
            )
        if request.hash in collector.failed:
            self.counts.failed += 1
            raise collector.failed[request.hash]
        is_new = request.hash in collector.collected
        if self.cache is not None and (is_new or not refresh):
            known = self.cache.get(request.hash)
            if known is not None:
                reply, _ = self._known(known)
                return self._noted(request, EngineReply(reply, cached=not is_new))
        expected = estimate(request) if estimate else Usage()
        worst = worst_case(request) if worst_case else expected
        collector.take(self, request, expected, worst)
        await _scope.get().park()
        raise AssertionError("a parked call does not return")


class CollectingEngines:
    """The engines of a run, each behind the same collector."""

    def __init__(self, engines: Engines, models: Sequence[str], collector: BatchCollector) -> None:
        self._engines = {model: CollectingEngine(engines[model], collector) for model in models}

    def __getitem__(self, model: str) -> Engine:
        return self._engines[model]
