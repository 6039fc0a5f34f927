"""cache -> single flight -> lease -> retry -> budget -> limiter -> adapter -> commit -> answer."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import NamedTuple

from trajudge.judges.adapters.base import Adapter
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
from trajudge.judges.engine.billing import may_be_billed
from trajudge.judges.engine.budget import Budget, Reservation
from trajudge.judges.engine.circuit_breaker import CircuitBreaker
from trajudge.judges.engine.expected import Estimate, ExpectedUsage, tokens_of
from trajudge.judges.engine.limiting.limiter import Limiter, Permit
from trajudge.judges.engine.retry import Retry
from trajudge.judges.engine.single_flight import SingleFlight
from trajudge.judges.engine.store.cache import Cache
from trajudge.judges.engine.store.leases import Claim
from trajudge.judges.engine.store.rows import Outcome
from trajudge.judges.engine.store.sent import SentCalls
from trajudge.judges.model import Reply, Request, Usage
from trajudge.trajectories.util.errors import UserError

log = logging.getLogger(__name__)

FIRST_POLL, LONGEST_POLL = 0.01, 0.25  # seconds between looks at what another process is asking

NO_USAGE = Usage()


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
        # Under its lease every request is looked up. Before it only as long as answers are found.
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
        leased = partial(self._leased, request, estimate, worst_case, asked_before)
        answer, is_first = await self._flight.run(request.hash, leased)
        return self._noted(request, answer if is_first else answer._replace(cached=True))

    def stop(self, error: Exception) -> None:
        """Send nothing any more: waiting calls get ``error``, calls in flight are finished."""
        log.info("stopped: %s", error)
        self._stopped = error
        self.limiter.stop(error)

    async def drain(self) -> None:
        """Cancel the calls under way and wait for their end."""
        await self._flight.drain()

    async def close(self) -> None:
        """Cancel the calls under way, commit what has arrived, close the connections."""
        await self.drain()
        if self.cache is not None:
            await self.cache.close()
        await self.adapter.close()

    async def _leased(
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
            self.cache.release(request.hash)
        self._looks_ahead = True
        return self._known(known)

    def _asked_before(self, request: Request, since: float) -> float:
        """Return when the answer was kept that is to be replaced."""
        return min(self.cache.created(request.hash), since) if self.cache is not None else since

    async def _claim(
        self, cache: Cache, request_hash: str, asked_before: float | None
    ) -> Outcome | None:
        """Claim a request; return what was answered to it in the meantime, None to ask now."""
        key = bytes.fromhex(request_hash)
        poll = FIRST_POLL
        while (claim := cache.leases.claim(key)) is Claim.HELD:
            if asked_before is None and (known := cache.get(request_hash)) is not None:
                return known
            self.counts.waiting += 1
            try:
                while cache.leases.is_held(key):
                    if self._stopped is not None:
                        raise self._stopped
                    await asyncio.sleep(poll)
                    poll = min(2 * poll, LONGEST_POLL)
            finally:
                self.counts.waiting -= 1
        if claim is Claim.TAKEN_OVER:
            cache.recover()
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
        expected = ExpectedUsage(request, estimate)
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
        if self.cache is None:
            return
        try:
            await self.cache.put(request, outcome)
        except UserError as error:
            self.stop(error)
            raise

    async def _reserved(
        self, request: Request, expected: ExpectedUsage, worst: Usage, again: bool
    ) -> Reply:
        """Make one attempt with a reservation of its own: a failed one may be billed as well as the
        next."""
        async with self.budget.reserve(request.model, worst) as reservation:
            return await self._attempt(request, expected, reservation, again)

    async def _attempt(
        self, request: Request, expected: ExpectedUsage, reservation: Reservation, again: bool
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

    def _failed(self, permit: Permit, error: CallFailed, expected: ExpectedUsage) -> None:
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
