"""Batches of one run: its requests are collected, submitted within limits, and their results read.

A judge whose call is collected goes no further: its judgment is cancelled, and made again from its
start when the replies are there, which then come from the cache. A judge that asks three times,
each time by the reply before, is complete after three rounds.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import IO, Any, TypeGuard, TypeVar

from trajudge.judges.adapters.anthropic import AnthropicAdapter
from trajudge.judges.adapters.base import Adapter
from trajudge.judges.adapters.errors import (
    BadReply,
    Blocked,
    CallFailed,
    ContextOverflow,
    Final,
    NoAccess,
    Refused,
    Retryable,
)
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.batch.anthropic import AnthropicBatches
from trajudge.judges.batch.ledger import BatchLine, BatchRow, Ledger, LineOutcome
from trajudge.judges.batch.openai import FileBatches, OpenAIBatches
from trajudge.judges.batch.service import BatchOptions, BatchService, LineResult, MaybeAccepted
from trajudge.judges.engine.budget import Estimate, tokens_of
from trajudge.judges.engine.cache import Cache, Outcome, RequestKey
from trajudge.judges.engine.engine import Engine, EngineReply
from trajudge.judges.engine.retry import CircuitBreaker
from trajudge.judges.model import Reply, Request, Usage
from trajudge.judges.models import Price
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 5  # of a request in one session, before its failure is a judgment's
QUIET = 0.05  # seconds without another call, after which a judgment is taken to wait for replies
SLOWER = 1.5  # each look waits so much longer than the one before
SLOWEST = 30.0  # times the first wait
MOST_REFUSALS = 20  # in a row, while nothing is under way

Place = tuple[str, str]
"""Endpoint (as in a request's hash) and model."""


def batch_service(adapter: Adapter, model: str, files: Path | None) -> BatchService:
    """Return the service that takes batches of an adapter's requests; ``files`` the folder where
    they are written instead of sent. Raises UserError where there is none."""
    if isinstance(adapter, OpenAIAdapter):
        if files is not None:
            return FileBatches(adapter, files)
        if adapter.name in {"openai", "http", "azure"}:
            return OpenAIBatches(adapter)
    if files is None and isinstance(adapter, AnthropicAdapter) and adapter.name == "anthropic":
        return AnthropicBatches(adapter)
    option = "--batch-files (chat completions)" if files else "--batch"
    raise UserError(
        f"{option} does not go with {model} through the adapter {adapter.name}: batches go to "
        "OpenAI, Azure and Anthropic, files to vllm run-batch; leave the option out"
    )


class _Spool:
    """Lines of one model that wait for their submission. Their bytes (screenshots, for the most
    part) are in a temporary file, which ends with the process: a line that was never submitted is
    rendered again."""

    def __init__(self, limits: BatchOptions) -> None:
        self._limits = limits
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
        self.lines: dict[str, tuple[BatchLine, int, int]] = {}  # by request: without its bytes
        self.reserved = 0.0

    def add(self, line: BatchLine) -> None:
        """Take in a line. Raises UserError if it alone is over a limit of a file."""
        limits, size = self._limits, len(line.content)
        if size + 1 > limits.bytes or line.tokens > (limits.tokens or line.tokens):
            raise UserError(
                f"a request of {size:,} bytes and about {line.tokens:,} tokens does not fit a "
                f"batch file ({limits.bytes:,} bytes): run without --batch"
            )
        offset = self._file.seek(0, 2)
        self._file.write(line.content)
        self.lines[line.request] = replace(line, content=b""), offset, size
        self.reserved += line.reserved

    def parts(self) -> Iterator[list[BatchLine]]:
        """Yield the lines in files within the limits, in the order in which they came."""
        limits = self._limits
        most = min(n for n in (limits.tokens, limits.enqueued, inf) if n is not None)
        part: list[BatchLine] = []
        total = tokens = 0
        for line, offset, size in self.lines.values():
            total, tokens = total + size + 1, tokens + line.tokens
            is_full = len(part) == limits.lines or total > limits.bytes or tokens > most
            if part and is_full:
                yield part
                part, total, tokens = [], size + 1, line.tokens
            self._file.seek(offset)
            part.append(replace(line, content=self._file.read(size)))
        if part:
            yield part

    def close(self) -> None:
        self._file.close()


@dataclass
class BatchCollection:
    """What one batch brought: requests that are ``answered`` (a refusal among them), and why the
    others failed; None where the same line may be sent again with a parameter less. ``overrun`` is
    the dearest line's cost as a multiple of what was reserved for it, at least 1."""

    answered: dict[str, Outcome] = field(default_factory=dict)
    failed: dict[str, CallFailed | None] = field(default_factory=dict)
    duplicates: int = 0
    overrun: float = 1.0


async def collect(
    row: BatchRow, service: BatchService, ledger: Ledger, cache: Cache
) -> BatchCollection:
    """Take in the results of a batch that has ended: replies into the cache, then every line's
    outcome into the ledger, in this order: a process that is killed in between collects the same
    batch again.

    Raises CallFailed if they cannot be downloaded whole: the batch then stays open, for what it
    answered is paid for.
    """
    results = await service.results(row.provider_id)
    reading = _Reading(row, service, ledger.open_lines(row.id))
    for result in sorted(results, key=lambda line: line.content is None):
        reading.add(result)
    collection = reading.collection
    for request, outcome in collection.answered.items():
        cache.put(RequestKey(request, row.endpoint, row.model), outcome)
    for request in reading.lines.keys() - collection.answered - collection.failed.keys():
        collection.failed[request] = Retryable("the batch ended without a result for this line")
    ledger.collected(row.id, reading.outcomes(), collection.duplicates)
    if unread := reading.unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        sys.stderr.write(f"warning: {unread[0]}{more}: its request is asked again\n")
    return collection


class _Reading:
    """Reads the lines of one batch; an answer wins over an error, the first over later ones.
    ``unread`` says of lines of a file why their requests are asked again."""

    def __init__(
        self,
        row: BatchRow,
        service: BatchService,
        lines: Mapping[str, tuple[dict[str, Any], float]],
    ) -> None:
        self.row, self.service, self.lines = row, service, lines
        self.collection = BatchCollection()
        self.unread: list[str] = []
        self._price = row.prices
        self._paid: defaultdict[str, float] = defaultdict(float)
        self._unpriced: set[str] = set()

    def add(self, result: LineResult) -> None:
        """Take in one line. Lines of requests that are not this batch's are ignored."""
        request, collection = result.request, self.collection
        if request not in self.lines:
            log.info("batch %s: a result of no request of ours", self.row.id)
            return
        parameters, reserved = self.lines[request]
        outcome = self._outcome(result, parameters)
        if request in collection.answered or request in collection.failed:
            collection.duplicates += 1
        elif isinstance(outcome, Reply) or _is_kept(outcome):
            collection.answered[request] = outcome
        else:
            collection.failed[request] = outcome
            if result.where and isinstance(outcome, Retryable):
                self.unread.append(str(outcome))
        # Whatever comes twice is billed twice.
        usage = outcome.usage if outcome else None
        if usage is not None and self._price is not None:
            cost = self._price.cost(usage)
            if reserved:
                collection.overrun = max(collection.overrun, cost / reserved)
            self._paid[request] += cost
        elif usage is not None or isinstance(outcome, Reply | BadReply):
            self._unpriced.add(request)
            self._paid[request] += reserved

    def outcomes(self) -> Iterator[LineOutcome]:
        """Yield how the lines ended, for the ledger."""
        for request in self.collection.answered:
            yield LineOutcome(request, "done", *self._cost(request))
        for request, error in self.collection.failed.items():
            yield LineOutcome(request, "failed", *self._cost(request), str(error or ""))

    def _cost(self, request: str) -> tuple[float, bool]:
        return self._paid[request], request in self._unpriced

    def _outcome(self, result: LineResult, parameters: dict[str, Any]) -> Reply | CallFailed | None:
        """Parse a line; None where a parameter was refused, and is left out from now on."""
        adapter = self.service.adapter
        if result.expired:
            return Retryable("the batch ended before this line's turn")
        if result.content is None:
            return adapter.batch_failure(
                self.row.model,
                result.status,
                result.error,
                parameters,
                where=result.where,
                unserved=self.service.unserved,
            )
        try:
            return adapter.batch_reply(result.content, parameters, where=result.where)
        except CallFailed as error:
            return error


def _is_kept(error: CallFailed | None) -> TypeGuard[Refused | ContextOverflow]:
    return isinstance(error, Refused | ContextOverflow) and not isinstance(error, Blocked)


@dataclass
class Batches:
    """The batches of a ``run``'s models: ``services``, their ``options``, and the ``prices`` in a
    batch (None: not known) by endpoint and model. ``limit`` are the dollars that may be reserved
    and paid in all (None: any number), ``spent`` those of before this round.

    ``failed`` are requests that are given up, ``collected`` those that this session brought,
    ``awaited`` those in open batches that this round needs; ``error`` is what ends the run once its
    judgments are kept, ``deferred`` the dollars for which there was no money, and ``progress`` a
    line on what is under way.
    """

    ledger: Ledger
    cache: Cache
    services: Mapping[Place, BatchService]
    options: Mapping[Place, BatchOptions] = field(default_factory=dict)
    prices: Mapping[Place, Price | None] = field(default_factory=dict)
    run: str = ""
    limit: float | None = None
    spent: float = 0.0
    failed: dict[str, CallFailed] = field(default_factory=dict)
    collected: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)
    error: UserError | None = None
    deferred: float = 0.0
    is_full: bool = False
    progress: str = ""
    _spools: dict[Place, _Spool] = field(default_factory=dict)
    _under_way: Collection[str] = ()
    _through: dict[str, int] = field(default_factory=dict)
    _attempts: Counter[str] = field(default_factory=Counter)
    _breakers: dict[Place, CircuitBreaker] = field(default_factory=dict)
    _correction: float = 1.0
    _refusals: int = 0

    @property
    def grace(self) -> float:
        """Seconds until a submission without an answer may be made again."""
        return next((one.grace for one in self.options.values()), BatchOptions().grace)

    @property
    def requests(self) -> set[str]:
        """The requests that wait for their submission."""
        return {request for spool in self._spools.values() for request in spool.lines}

    @property
    def reserved(self) -> float:
        """The dollars that these may cost at most."""
        return sum(spool.reserved for spool in self._spools.values())

    def open_rows(self) -> list[BatchRow]:
        """Return the open batches that can be asked about here."""
        return [
            row
            for row in self.ledger.batches()
            if row.is_open
            and (service := self.services.get((row.endpoint, row.model)))
            and service.name == row.service
        ]

    def through(self, row: BatchRow) -> int:
        """Return how many of its lines were through at the last look."""
        return self._through.get(row.id, 0)

    def begin_round(self, spent: float) -> None:
        """Forget the lines of the round before."""
        for spool in self._spools.values():
            spool.close()
        self._spools, self._under_way = {}, self.ledger.open_requests()
        self.awaited, self.spent, self.deferred = set(), spent, 0.0

    def add(self, request: Request, expected: Usage, worst: Usage) -> None:
        """Make a line of a request, unless it is one already or there is no money for it."""
        place = (request.endpoint, request.model)
        if place not in self._spools:
            self._spools[place] = _Spool(self.options[place])
        spool, service, price = self._spools[place], self.services[place], self.prices[place]
        if request.hash in self._under_way:
            self.awaited.add(request.hash)
            return
        if request.hash in spool.lines:
            return
        as_cached = worst.model_copy(update={"input": 0, "cache_write": worst.input})
        dearest = max(price.cost(one) for one in (worst, as_cached)) if price else 0.0
        reserved = dearest * self._correction
        if self.limit is not None and self.spent + self.reserved + reserved > self.limit:
            self.deferred = max(self.deferred, reserved)
            return
        body, parameters = service.adapter.batch_body(request)
        line = service.line(request.hash, body)
        spool.add(BatchLine(request.hash, line, parameters, tokens_of(expected), reserved))

    async def submit(self) -> int:
        """Submit what was collected, as far as there is room; return the number of batches. What
        is left over is collected again in the next round. Raises UserError."""
        self.is_full, count = False, 0
        for place, spool in self._spools.items():
            most = self.options[place].enqueued
            for lines in spool.parts():
                tokens = sum(line.tokens for line in lines)
                here = [r.tokens for r in self.open_rows() if (r.endpoint, r.model) == place]
                if most and here and sum(here) + tokens > most:
                    self.is_full = True
                    break
                if not await self._submit(place, lines):
                    self._no_room()
                    break
                count += 1
                self._refusals = 0
        return count

    async def _submit(self, place: Place, lines: Sequence[BatchLine]) -> bool:
        """Submit the lines that are in no open batch; False if the provider has no room for now. A
        submission without an answer stays an intent. Raises UserError if the provider refuses the
        batch."""
        service, price = self.services[place], self.prices[place]
        priced = price.model_dump_json(exclude_defaults=True) if price else ""
        row = BatchRow(service.name, *place, self.run, priced)
        mine = self.ledger.intend(row, lines)
        if not mine:
            return True
        try:
            provider_id = await service.submit(row.id, mine)
        except MaybeAccepted as error:
            log.info("batch %s: %s: it may have been taken", row.id, error)
            return True
        except (CallFailed, UserError) as error:  # UserError: a file that could not be written
            self.ledger.release(row.id, str(error))
            log.info("batch %s: %s", row.id, error)
            if isinstance(error, Retryable):  # refused before it was taken
                return False
            if isinstance(error, UserError):
                raise
            raise UserError(f"the batch was refused: {error}") from error
        self.ledger.submitted(row.id, provider_id)
        log.info("batch %s: submitted as %s, %d lines", row.id, provider_id, len(mine))
        return True

    async def wait(self, pause: Callable[[float], Awaitable[bool]]) -> bool:
        """Wait until all batches have ended, or the first where others wait for its room.
        ``pause`` waits so many seconds, or until the user interrupts: then it returns False, and
        so does this. Raises UserError."""
        poll = delay = next(iter(self.options.values())).poll
        is_room = False
        while await pause(delay):
            for ended in await self.look():
                self.note(ended)
                is_room = True
            if not self.open_rows() or (self.is_full and is_room):
                return True
            delay = min(delay * SLOWER, poll * SLOWEST)
        return False

    async def look(self) -> list[tuple[Place, BatchCollection]]:
        """Look at every open batch once; collect those that have ended. Raises UserError where a
        batch was refused or the key is wrong; a server that fails is asked again later."""
        ended = []
        for row in self.open_rows():
            try:
                collection = await self._look_at(row)
            except NoAccess as error:
                raise UserError(str(error)) from error
            except CallFailed as error:
                log.info("batch %s: %s", row.id, error)
                continue
            if collection is not None:
                ended.append(((row.endpoint, row.model), collection))
        rows = self.open_rows()
        through, lines = sum(map(self.through, rows)), sum(row.lines for row in rows)
        batches = count_of(len(rows), "batch")
        self.progress = f"{batches}: {through:,} of {lines:,} requests through" if rows else ""
        return ended

    async def _look_at(self, row: BatchRow) -> BatchCollection | None:
        service = self.services[row.endpoint, row.model]
        if row.state == "intent":
            row = await self._reconcile(row, service)
        if not row.provider_id:
            return None
        state = await service.state(row.provider_id)
        self._through[row.id] = state.through
        if state.failed:
            self.ledger.release(row.id, state.failed)
            if not state.is_full:
                raise UserError(f"batch {row.provider_id} failed: {state.failed}")
            self._no_room()
        elif state.ended:
            return await collect(row, service, self.ledger, self.cache)
        return None

    async def _reconcile(self, row: BatchRow, service: BatchService) -> BatchRow:
        """Find out what became of an intent. It is released, and its lines may be sent again, when
        the provider lists no such batch ``grace`` seconds after it. Raises CallFailed."""
        is_late = time.time() > row.intent_at + self.grace
        known = {one.provider_id for one in self.ledger.batches() if one.provider_id}
        provider_id = await service.find(row, self.ledger.open_lines(row.id).keys(), known)
        if provider_id:
            self.ledger.submitted(row.id, provider_id)
            log.info("batch %s: found as %s", row.id, provider_id)
        elif is_late:
            self.ledger.release(row.id, "never reached the provider")
            log.info("batch %s: never reached the provider", row.id)
        return replace(row, provider_id=provider_id)

    def _no_room(self) -> None:
        """Count a submission for which the provider had no room. Raises UserError if it never has,
        though nothing is under way."""
        self.is_full = True
        self._refusals = 0 if self.open_rows() else self._refusals + 1
        if self._refusals >= MOST_REFUSALS:
            raise UserError(
                "the provider has no room for a batch though none is under way: make smaller ones "
                "with  --batch-options tokens=N  or try later; nothing that was answered is lost"
            )

    def note(self, results: tuple[Place, BatchCollection]) -> None:
        """Take in what a batch brought: where a line cost more than was reserved for it, more is
        reserved for all that follow. Raises UserError where the key, the account or the model is
        wrong; sets ``error`` as live calls end a run, after ten failures of one kind and no
        answer."""
        place, collection = results
        if collection.overrun > 1:
            if self.limit is not None and self._correction == 1:
                sys.stderr.write(
                    f"warning: a line of a batch cost {collection.overrun:.1f} times what was "
                    "reserved for it: its server ignores --max-tokens, or counts more tokens: as "
                    "much more is reserved for every line that follows\n"
                )
            self._correction *= collection.overrun
        self.collected |= collection.answered.keys()
        breaker = self._breakers.setdefault(place, CircuitBreaker(place[0], inf))
        if any(isinstance(outcome, Reply) for outcome in collection.answered.values()):
            breaker.answered()
        for outcome in (*collection.answered.values(), *collection.failed.values()):
            if isinstance(outcome, Final | BadReply):
                ended = breaker.failed(outcome, 0.0, 0.0)
                if ended is not None and isinstance(outcome, NoAccess):
                    raise ended
        for request, error in collection.failed.items():
            self._attempts[request] += error is not None
            if isinstance(error, Retryable) and self._attempts[request] >= ATTEMPTS:
                breaker.gave_up(error)
            elif error is None or isinstance(error, Retryable):
                continue
            self.failed[request] = error
        self.error = self.error or breaker.error


_judgment: ContextVar[_Parking] = ContextVar("judgment")


class _Parking:
    """The calls of one judgment that wait for a later round."""

    def __init__(self) -> None:
        self.count = 0
        self.first = asyncio.Event()

    async def park(self) -> None:
        """Wait until the judgment is cancelled."""
        self.count += 1
        self.first.set()
        await asyncio.get_running_loop().create_future()


async def until_parked(judging: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    """Run a judgment until it ends (its result) or waits for replies of a later round (None).

    Calls that a judge makes side by side are collected together: after the first the judgment goes
    on until it has made no other for ``QUIET`` seconds.
    """
    parking = _Parking()
    token = _judgment.set(parking)
    task = asyncio.create_task(judging())
    _judgment.reset(token)
    parked = asyncio.create_task(parking.first.wait())
    try:
        await asyncio.wait({task, parked}, return_when=asyncio.FIRST_COMPLETED)
        known = 0
        while not task.done() and known != parking.count:
            known = parking.count
            await asyncio.wait({task}, timeout=QUIET)
        return task.result() if task.done() else None
    finally:
        parked.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


class CollectingEngine(Engine):
    """An engine that answers from the cache and collects what is not there; it sends nothing."""

    def __init__(self, live: Engine, cache: Cache, batches: Batches) -> None:
        super().__init__(
            live.adapter,
            cache=cache,
            limiter=live.limiter,
            retry=live.retry,
            budget=live.budget,
        )
        self.sent = live.sent
        self._replies, self._batches = cache, batches

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
        batches = self._batches
        if request.hash in batches.failed:
            self.counts.failed += 1
            raise batches.failed[request.hash]
        is_new = request.hash in batches.collected
        if is_new or not refresh:
            known = self._replies.get(request.hash)
            if known is not None:
                return self._noted(request, self._known(known)._replace(cached=not is_new))
        expected = estimate(request) if estimate else Usage()
        batches.add(request, expected, worst_case(request) if worst_case else expected)
        await _judgment.get().park()
        raise AssertionError("a parked call does not return")
