"""cache -> single flight -> claim -> retry -> budget -> limiter -> adapter: one engine per
endpoint, the engines of a run, and the clients that judges are given.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Container, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from trajudge.judges.adapters.base import AbandonsCalls, Adapter
from trajudge.judges.adapters.errors import (
    Blocked,
    CallFailed,
    ContextOverflow,
    Overloaded,
    RateLimited,
    Refused,
    Retryable,
    ServerFailed,
    Unreachable,
)
from trajudge.judges.engine.budget import (
    Budget,
    Estimate,
    Price,
    Reservation,
    may_be_billed,
    tokens_of,
)
from trajudge.judges.engine.cache import Cache, Outcome, SentCalls
from trajudge.judges.engine.limits import Limiter, Permit
from trajudge.judges.engine.retry import CircuitBreaker, Retry
from trajudge.judges.judging import BaseClient, CallArgs
from trajudge.judges.model import REPAIR, Call, Message, Reply, Request, Usage
from trajudge.trajectories.model import checked
from trajudge.trajectories.tokens import likely_tokens
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Work under way, by key. A key is free again when its work has ended."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[T]] = {}
        self._waiting: Counter[asyncio.Task[T]] = Counter()

    async def run(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """Return the result of the work under way for ``key``, starting ``work()`` if there is
        none, and whether this call started it.

        One waiter that is cancelled leaves the others undisturbed; with the last one the work
        itself is cancelled.
        """
        task = self._tasks.get(key)
        is_first = task is None
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(partial(self._forget, key))
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task), is_first
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                self._forget(key, task)
                task.cancel()  # without effect where it has ended

    async def drain(self) -> None:
        """Cancel the work under way and wait for its end."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: str, task: asyncio.Task[T]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]


log = logging.getLogger(__name__)

FIRST_POLL, LONGEST_POLL = 0.01, 0.25  # seconds between looks at what another process is asking

NO_USAGE = Usage()

_Expected = Callable[[], Usage]
"""Returns the usage to expect of a request."""


class EngineReply(NamedTuple):
    """A reply, and whether this call did not make it: the cache had it, or the same request was
    under way."""

    reply: Reply
    cached: bool


@dataclass
class CallCounts:
    """Counts of a run's calls so far, for its progress line; ``waiting`` are requests that another
    process is making at the moment."""

    sent: int = 0
    answered: int = 0
    cached: int = 0
    refused: int = 0
    failed: int = 0
    retried: int = 0
    waiting: int = 0


class Engine:
    """Sends requests through cache, single flight, retries, budget and rate limits to the adapter.

    A reply is on the disk before it is returned, so a run that is killed at any moment and started
    again never repeats a completed call. ``cache`` None: nothing is kept.
    """

    def __init__(
        self,
        adapter: Adapter,
        *,
        cache: Cache | None,
        limiter: Limiter,
        retry: Retry,
        budget: Budget,
    ) -> None:
        self.adapter = adapter
        self.cache = cache
        self.limiter = limiter
        self.retry = retry
        self.budget = budget
        self.counts = CallCounts()
        self.sent = SentCalls()
        self._flight: SingleFlight[EngineReply] = SingleFlight()
        # Under its claim every request is looked up. Before it only as long as answers are found.
        self._looks_ahead = True
        self._stopped: Exception | None = None
        self._circuit_breaker = CircuitBreaker(adapter.endpoint, retry.seconds)

    async def ask(
        self,
        request: Request,
        *,
        refresh: bool = False,
        since: float = inf,
        estimate: Estimate | None = None,
        worst_case: Estimate | None = None,
    ) -> EngineReply:
        """Return the reply to a request; ``refresh`` repeats a call that is in the cache, unless it
        was kept after ``since`` (seconds since 1970).

        ``estimate`` serves the token limit, ``worst_case`` (default: the same) the budget. Raises
        CallFailed if this call failed for good, BudgetSpent if it would pass the limit, UserError
        if the run as a whole cannot go on (no key, no server, a full disk), and the error that
        ``stop`` was given.
        """
        if self.cache is not None and self._looks_ahead and not refresh:
            known = self.cache.get(request.hash)
            if known is not None:
                return self._noted(request, self._known(known))
            self._looks_ahead = False
        asked_before = self._asked_before(request, since) if refresh else None
        claimed = partial(self._claimed, request, estimate, worst_case, asked_before)
        answer, is_first = await self._flight.run(request.hash, claimed)
        return self._noted(request, answer if is_first else answer._replace(cached=True))

    def stop(self, error: Exception) -> None:
        """Send nothing any more: waiting calls get ``error``, calls in flight are finished unless
        the adapter abandons them."""
        log.info("stopped: %s", error)
        self._stopped = error
        self.limiter.stop(error)
        if isinstance(self.adapter, AbandonsCalls):
            self.adapter.abandon(error)

    async def drain(self) -> None:
        """Cancel the calls under way and wait for their end."""
        await self._flight.drain()

    async def close(self) -> None:
        """Cancel the calls under way, close the cache and the connections."""
        await self.drain()
        if self.cache is not None:
            self.cache.close()
        await self.adapter.close()

    async def _claimed(
        self,
        request: Request,
        estimate: Estimate | None,
        worst_case: Estimate | None,
        asked_before: float | None,
    ) -> EngineReply:
        """Ask, unless another process that shares the cache does: then wait for its answer. Of a
        request that was ``asked_before``, only a later answer counts."""
        if self.cache is None:
            return EngineReply(await self._fetch(request, estimate, worst_case), cached=False)
        known = await self._claim(self.cache, request.hash, asked_before)
        try:
            if known is None:
                reply = await self._fetch(request, estimate, worst_case)
                return EngineReply(reply, cached=False)
        finally:
            self.cache.claims.release(request.hash)
        self._looks_ahead = True
        return self._known(known)

    def _asked_before(self, request: Request, since: float) -> float:
        """Return when the answer was kept that is to be replaced."""
        return min(self.cache.created(request.hash), since) if self.cache is not None else since

    async def _claim(
        self, cache: Cache, request_hash: str, asked_before: float | None
    ) -> Outcome | None:
        """Claim a request; return what was answered to it in the meantime, None to ask now."""
        poll = FIRST_POLL
        has_waited = False
        while not cache.claims.claim(request_hash):
            has_waited = True
            if asked_before is None and (known := cache.get(request_hash)) is not None:
                return known
            self.counts.waiting += 1
            try:
                while cache.claims.is_claimed(request_hash):
                    if self._stopped is not None:
                        raise self._stopped
                    await asyncio.sleep(poll)
                    poll = min(2 * poll, LONGEST_POLL)
            finally:
                self.counts.waiting -= 1
        if has_waited:
            cache.recover()  # the other one may have died with the answer
        is_new = asked_before is None or cache.created(request_hash) > asked_before
        return cache.get(request_hash) if is_new else None

    def _noted(self, request: Request, answer: EngineReply) -> EngineReply:
        sent = answer.reply.parameters
        self.sent.note(self.adapter, request.model, sent, cached=answer.cached)
        return answer

    def _known(self, known: Outcome) -> EngineReply:
        """Return a cached answer. Raises it if it is an error."""
        self.counts.cached += 1
        if isinstance(known, Reply):
            return EngineReply(known, cached=True)
        raise known

    async def _fetch(
        self, request: Request, estimate: Estimate | None, worst_case: Estimate | None
    ) -> Reply:
        # Counting a prompt's tokens takes time, and only a limit needs it: once, when asked for.
        expected: _Expected = cache(partial(estimate, request)) if estimate else Usage
        worst = NO_USAGE
        if self.budget.limit is not None:
            worst = worst_case(request) if worst_case else expected()
        try:
            reply = await self.retry.call(partial(self._reserved, request, expected, worst))
        except CallFailed as outcome:
            if isinstance(outcome, Refused | ContextOverflow) and not isinstance(outcome, Blocked):
                await self._keep(request, outcome)
            else:
                self.counts.failed += 1
            if isinstance(outcome, Retryable):
                self._end_run(self._circuit_breaker.gave_up(outcome), outcome)
            raise
        await self._keep(request, reply)
        return reply

    async def _keep(self, request: Request, outcome: Reply | Refused | ContextOverflow) -> None:
        try:
            if self.cache is not None:
                await self.cache.put_soon(request, outcome)
        except UserError as error:
            self.stop(error)
            raise

    async def _reserved(
        self, request: Request, expected: _Expected, worst: Usage, again: bool
    ) -> Reply:
        """Make one attempt with a reservation of its own: a failed one may be billed as well as the
        next."""
        async with self.budget.reserve(request.model, worst) as reservation:
            return await self._attempt(request, expected, reservation, again)

    async def _attempt(
        self, request: Request, expected: _Expected, reservation: Reservation, again: bool
    ) -> Reply:
        counted = self.limiter.counts_tokens
        permit = await self.limiter.acquire(tokens_of(expected()) if counted else 0, again=again)
        self.counts.sent += 1
        self.counts.retried += again
        try:
            self.budget.sending(reservation, request.hash)
            sent = await self.adapter.send(request)
        except CallFailed as error:
            self._charge(reservation, error)
            self._failed(permit, error, expected)
            raise
        except BaseException as error:
            self._charge(reservation, error)
            self.limiter.release(permit)
            raise
        self.budget.settle(reservation, sent.reply.usage)
        self.counts.answered += 1
        self._circuit_breaker.answered()
        usage = sent.reply.usage
        tokens = tokens_of(usage) if counted and usage is not None else None
        self.limiter.answered(permit, sent.limits, tokens)
        return sent.reply

    def _charge(self, reservation: Reservation, error: BaseException) -> None:
        """Count the possible cost of an attempt without a reply."""
        usage = error.usage if isinstance(error, CallFailed) else None
        if usage is not None:
            self.budget.settle(reservation, usage)
        elif may_be_billed(error):
            self.budget.presume(reservation)

    def _failed(self, permit: Permit, error: CallFailed, expected: _Expected) -> None:
        """Report a failure to the limiter, and end a run that is unrecoverable."""
        log.info("%s: %s", type(error).__name__, error)
        now = asyncio.get_running_loop().time()
        unrecoverable = self._circuit_breaker.failed(error, permit.at, now, again=permit.again)
        if unrecoverable is not None:
            self.stop(unrecoverable)
        match error:
            case RateLimited():
                self.counts.refused += 1
                permit.tokens = tokens_of(expected())  # tells which limit it ran into
                self.limiter.refused(permit, error.retry_after, error.limits)
            case Overloaded() | Unreachable():
                self.limiter.failed(permit, error.retry_after)
            case ServerFailed():
                self.limiter.server_failed(permit, error.retry_after)
            case _:
                self.limiter.release(permit)
        self._end_run(unrecoverable, error)

    def _end_run(self, unrecoverable: UserError | None, error: CallFailed) -> None:
        """Send nothing any more. Raises what is ``unrecoverable``, if anything is."""
        if unrecoverable is not None:
            if self._stopped is None:
                self.stop(unrecoverable)
            raise unrecoverable from error


SHORTEST = 1.0  # seconds: a shorter pause is over before it is read


def reasons(engine: Engine) -> Iterator[str]:
    """Yield the reasons, for example ``paused until 14:03:22 (429, Retry-After 30 s)``, ``window 12
    of 64``, ``37 retries``; nothing while all goes well."""
    now = asyncio.get_running_loop().time()
    limiter, retry, counts = engine.limiter, engine.retry, engine.counts
    if limiter.paused_until - now >= SHORTEST:
        yield f"paused until {_clock(limiter.paused_until - now)} ({limiter.pause_reason})"
    elif retry.wakes and min(retry.wakes) - now >= SHORTEST:
        until = _clock(min(retry.wakes) - now)
        yield f"{_calls(len(retry.wakes))} for another attempt, the first until {until}"
    if limiter.concurrency.size < limiter.concurrency.cap:
        yield f"window {limiter.concurrency.size} of {limiter.concurrency.cap}"
    if counts.waiting:
        yield f"{_calls(counts.waiting)} for another process that asks the same"
    if engine.budget.waiting:
        yield f"{_calls(engine.budget.waiting)} for what --max-cost reserves to be released"
    if counts.retried:
        yield count_of(counts.retried, "retry")


def _calls(number: int) -> str:
    return f"{count_of(number, 'call')} {'waits' if number == 1 else 'wait'}"


def _clock(seconds: float) -> str:
    """Return the time of day, so many seconds from now."""
    return f"{datetime.now() + timedelta(seconds=seconds):%H:%M:%S}"


class Engines(Mapping[str, Engine]):
    """Engine of every model. Models of one endpoint share an engine and with it its ``limiter``,
    because a server's limits hold for all its models."""

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        *,
        cache: Cache,
        limiter: Callable[[str], Limiter],
        retry: Retry,
        budget: Budget,
    ) -> None:
        """Make the engines; ``adapters`` by the name of the model, ``limiter`` of an endpoint."""
        self.cache = cache
        self.budget = budget
        self.sent = SentCalls()
        self._adapters = tuple(adapters.values())
        self._engines: dict[tuple[str, str], Engine] = {}
        self._by_model: dict[str, Engine] = {}
        for model, adapter in adapters.items():
            address = (adapter.name, adapter.endpoint)
            if address not in self._engines:
                engine = Engine(
                    adapter,
                    cache=cache,
                    limiter=limiter(adapter.endpoint),
                    retry=retry,
                    budget=budget,
                )
                engine.sent = self.sent
                self._engines[address] = engine
            self._by_model[model] = self._engines[address]

    def __getitem__(self, model: str) -> Engine:
        """Return the engine that reaches ``model``."""
        return self._by_model[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_model)

    def __len__(self) -> int:
        return len(self._by_model)

    def stop(self, error: Exception) -> None:
        """Send nothing any more: waiting calls get ``error``, calls in flight are finished."""
        for engine in self._engines.values():
            engine.stop(error)

    def waits(self) -> str:
        """Say why calls wait, for the progress line; "" if none does."""
        several = len(self._engines) > 1
        return ", ".join(
            f"{engine.adapter.endpoint}: {reason}" if several else reason
            for engine in self._engines.values()
            for reason in reasons(engine)
        )

    async def close(self) -> None:
        """Cancel the calls under way, close the cache and the connections."""
        await asyncio.gather(*(engine.drain() for engine in self._engines.values()))
        self.cache.close()
        for adapter in self._adapters:
            await adapter.close()


class ModelRoute(NamedTuple):
    """How one model is reached: endpoint, parameters, the expected usage of a request and its
    maximum (``worst_case``; None: the expected one). A judge that limits a reply means the answer:
    no limit is below ``least_tokens``, of a model that thinks within it."""

    endpoint: str
    model: str
    parameters: Mapping[str, JsonValue]
    estimate: Estimate
    worst_case: Estimate | None = None
    least_tokens: int = 0


class _LedgerClient(BaseClient):
    """A client that keeps its calls, and names the model and the request of each.

    ``own`` is the run's model, ``others`` those that a call may name beside it.
    """

    def __init__(self, own: ModelRoute, others: Sequence[ModelRoute], sample: int) -> None:
        self._own = own
        self._routes = {route.model: route for route in others}
        self._sample = sample
        self._slots: list[Call | None] = []

    @property
    def calls(self) -> list[Call]:
        """Calls in the order in which they were made, whichever ended first, so that a resumed run
        writes the same bytes."""
        return [call for call in self._slots if call is not None]

    def _reserve_slot(self) -> int:
        """Reserve the next place of the ledger for the call that is made now."""
        self._slots.append(None)
        return len(self._slots) - 1

    def _route(self, call_args: CallArgs) -> ModelRoute:
        return self._own if call_args.model is None else self._routes[call_args.model]

    def _request(self, route: ModelRoute, call_args: CallArgs) -> Request:
        parameters = {**route.parameters, **call_args.parameters}
        limit = parameters.get("max_tokens")
        if isinstance(limit, int) and limit < route.least_tokens:
            parameters["max_tokens"] = route.least_tokens
        fields = {
            "endpoint": route.endpoint,
            "model": route.model,
            "messages": tuple(call_args.messages),
            "parameters": parameters,
            "sample": self._sample,
        }
        if call_args.parameters or {*map(type, call_args.messages)} != {Message}:
            return Request.model_validate(fields)  # a user's judge may have made them
        return checked(Request, fields)


class EngineClient(_LedgerClient):
    """Model client of one judgment, by the ``engines`` of its models; ``calls`` is its ledger, in
    the order of the calls.

    The parameters of ``own`` are overridden by those of a single call; ``sample`` tells repeated
    judgments apart; ``refresh`` are the hashes of requests that are asked again although the
    cache has an answer, unless it was kept after ``since`` (seconds since 1970): another judgment
    has asked the same again.
    """

    def __init__(
        self,
        engines: Mapping[str, Engine],
        own: ModelRoute,
        others: Sequence[ModelRoute] = (),
        sample: int = 0,
        *,
        refresh: Container[str] = (),
        since: float = inf,
    ) -> None:
        super().__init__(own, others, sample)
        self._engines, self._refresh, self._since = engines, refresh, since

    async def answer(self, call_args: CallArgs) -> Reply:
        """Ask the model. Raises what ``Engine.ask`` raises.

        A refusal and an overflow are kept in the ledger too, for they are answers; a failed call is
        not, for it may succeed when the run is resumed.
        """
        route = self._route(call_args)
        request, engine = self._request(route, call_args), self._engines[route.model]
        slot = self._reserve_slot()
        try:
            reply, cached = await engine.ask(
                request,
                refresh=request.hash in self._refresh,
                since=self._since,
                estimate=route.estimate,
                worst_case=route.worst_case,
            )
        except (Refused, ContextOverflow) as outcome:
            finish = "refused" if isinstance(outcome, Refused) else "context_overflow"
            self._slots[slot] = _call(call_args, request, finish=finish, usage=Usage(), cost=0.0)
            raise
        self._slots[slot] = _call(
            call_args,
            request,
            finish=reply.finish,
            usage=reply.usage,
            cost=engine.budget.cost(route.model, reply.usage),
            text=reply.text,
            seconds=0.0 if cached else reply.seconds,
            cached=cached,
        )
        return reply


class DryRunClient(_LedgerClient):
    """Model client that sends nothing; ``calls`` holds what each call would cost.

    Cached replies are returned and cost nothing. Every other call returns the reply that the judge
    assumes, with the usage of ``estimate`` (its output the assumed reply's, where there is one).
    """

    def __init__(
        self,
        own: ModelRoute,
        others: Sequence[ModelRoute] = (),
        sample: int = 0,
        *,
        price: Price,
        cache: Cache | None = None,
    ) -> None:
        super().__init__(own, others, sample)
        self._price = price
        self._cache = cache

    async def answer(self, call_args: CallArgs) -> Reply:
        """Return the cached reply or the assumed one, of which none can be read where the judge has
        assumed nothing: a corrective turn is not expected. Raises a cached failure."""
        if call_args.stage == REPAIR:
            return Reply(text="")
        route = self._route(call_args)
        request = self._request(route, call_args)
        known = self._cache.get(request.hash) if self._cache else None
        usage = Usage() if known else _expected(route, request, call_args.assume)
        self._slots[self._reserve_slot()] = _call(
            call_args,
            request,
            finish="not sent",
            usage=usage,
            cost=0.0 if known else self._price(route.model, usage),
            cached=known is not None,
        )
        if isinstance(known, Refused | ContextOverflow):
            raise known
        return known or Reply(text=call_args.assume, usage=usage, model=route.model)


def _call(
    call_args: CallArgs,
    request: Request,
    *,
    finish: str,
    usage: Usage | None,
    cost: float | None,
    text: str = "",
    seconds: float = 0.0,
    cached: bool = False,
) -> Call:
    fields = {
        "stage": call_args.stage,
        "request": request.hash,
        "rung": call_args.rung,
        "finish": finish,
        "usage": usage,
        "cost": cost,
        "text": text,
        "seconds": seconds,
        "cached": cached,
    }
    return checked(Call, fields)


def _expected(route: ModelRoute, request: Request, assume: str) -> Usage:
    expected = route.estimate(request)
    return expected.model_copy(update={"output": likely_tokens(assume)}) if assume else expected
