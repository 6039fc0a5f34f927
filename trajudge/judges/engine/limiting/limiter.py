"""Rate limiter that every request of a run passes: tasks wait here, in order, and nowhere else.

Backing off in a single task does not help: the next task takes its place. What one answer says of
the server (a limit, a refusal, a pause that it asks for) therefore holds for all.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from trajudge.judges.adapters.base import RateHeaders
from trajudge.judges.engine.limiting.rates import AdaptiveConcurrency, RateLimiter

log = logging.getLogger(__name__)

RECENT = 32  # requests whose fate decides between bad luck and trouble
BAD_LUCK = 5  # refusals among them that are no sign of a limit
BAD_LUCK_TOLD = 8  # where the server says when to come back: that tells of a moment, not of a place
RECENT_FAILING = 16  # where few go at once and the server fails (500): each may be given up soon
FIRST_PAUSE = 0.1  # seconds, doubled while the trouble lasts
LONGEST_PAUSE = 30.0
# Of a server that fails (500), and what all calls at once share of it: so each call outlasts a
# minute's outage, and many that fail for ever are given up in a minute or two.
LONGEST_FAILING, SHARED_FAILING = 4.0, 16.0


class Permit:
    """Permission to send one request: time of admission, concurrency level, reserved tokens."""

    __slots__ = ("again", "at", "level", "tokens", "troubled")

    def __init__(self, at: float, level: int, tokens: float, again: bool) -> None:
        self.at = at
        self.level = level
        self.tokens = tokens
        self.again = again
        self.troubled = False


class _Waiting(NamedTuple):
    """A request in the queue; those that are tried again stand before all others."""

    turn: asyncio.Future[Permit]
    tokens: float
    again: bool


class Limiter:
    """Admits at most ``concurrency`` requests at once, fewer where the server demands it.

    ``rpm`` and ``tpm`` are requests and tokens per minute set by the user; limits that the server
    reports apply as well. Nothing is admitted before ``paused_until``, for ``pause_reason``. Times
    are those of the running event loop's clock.
    """

    def __init__(
        self,
        *,
        concurrency: int = 64,
        rpm: float | None = None,
        tpm: float | None = None,
    ) -> None:
        self.concurrency: Final = AdaptiveConcurrency(concurrency)
        self.requests: Final = RateLimiter(rpm)
        self.tokens: Final = RateLimiter(tpm)
        self.in_flight = 0
        self._queue: deque[_Waiting] = deque()
        self._admitted: deque[Permit] = deque(maxlen=RECENT)
        self._ended: deque[Permit] = deque(maxlen=RECENT)
        self._pause = 0.0
        self._paused_at = 0.0
        self.paused_until = 0.0
        self.pause_reason = ""
        self._alarm: asyncio.TimerHandle | None = None
        self._stopped: Exception | None = None

    @property
    def counts_tokens(self) -> bool:
        """Whether a token limit is known, so that the size of a request matters."""
        return self.tokens.per_minute is not None

    async def acquire(self, tokens: float = 0.0, *, again: bool = False) -> Permit:
        """Wait for a permit; ``again`` goes before requests that wait for the first time, and in
        turn, so that no call uses up its attempts while others wait for theirs.

        Every permit is handed back to exactly one of ``answered``, ``refused``, ``failed``,
        ``server_failed`` and ``release``. Raises the error that ``stop`` was given.
        """
        if self._stopped is not None:
            raise self._stopped
        now = self._now()
        if not self._queue and self.in_flight < self.concurrency.size and self._delay(now) <= 0:
            return self._admit(now, tokens, again)  # as most: without a wait no future is needed
        turn: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        place = sum(one.again for one in self._queue) if again else len(self._queue)
        self._queue.insert(place, _Waiting(turn, tokens, again))
        self._pump()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release(turn.result())
            raise

    def answered(self, permit: Permit, limits: RateHeaders | None, tokens: float | None) -> None:
        """Return the permit of an answered request; ``tokens`` is the usage, where it is known."""
        self._pause = self._pause / 2 if self._pause > FIRST_PAUSE else 0.0
        self._ended.append(permit)
        self.concurrency.answered(permit.level)
        self._update_limits(limits)
        if tokens is not None:
            self.tokens.settle(tokens - permit.tokens)
        self.release(permit)

    def refused(
        self, permit: Permit, retry_after: float | None, limits: RateHeaders | None
    ) -> None:
        """Return the permit of a 429: too fast if its headers say so, else too many at once."""
        self._update_limits(limits)
        permit.troubled = True
        self._ended.append(permit)
        if self._is_too_fast(permit, retry_after, limits):
            if permit.at >= self._paused_at:
                self.requests.refused(self._now())
                self.tokens.refused(self._now())
        else:
            self._shrink(permit, BAD_LUCK if retry_after is None else BAD_LUCK_TOLD)
        if (retry_after is not None and _is_trouble(self._admitted)) or self.in_flight == 1:
            hint = "" if retry_after is None else f", Retry-After {retry_after:g} s"
            self._pause_all(permit, retry_after, "429" + hint)
        self.release(permit)

    def failed(self, permit: Permit, retry_after: float | None = None) -> None:
        """Return the permit of a request to an overloaded or unreachable server; pause all if most
        fail so."""
        permit.troubled = True
        self._ended.append(permit)
        if _is_trouble(self._ended):
            self._shrink(permit, BAD_LUCK)
            self._pause_all(permit, retry_after, "the server is overloaded or out of reach")
        self.release(permit)

    def server_failed(self, permit: Permit, retry_after: float | None = None) -> None:
        """Return the permit of a request that the server failed at (500).

        It may fail for ever where others are answered, so that a second attempt tells nothing of
        the server, and pauses stay short.
        """
        if not permit.again:
            permit.troubled = True
            self._ended.append(permit)
        recent = max(RECENT_FAILING, 2 * self.concurrency.cap)
        if _is_trouble(list(self._ended)[-recent:]):
            self._shrink(permit, BAD_LUCK)
            longest = min(LONGEST_FAILING, SHARED_FAILING / self.concurrency.cap)
            self._pause_all(permit, retry_after, "the server answers 500", longest)
        self.release(permit)

    def release(self, permit: Permit) -> None:
        """Return the permit of a request that ended in a way that says nothing about the server."""
        self.in_flight -= 1
        self._pump()

    def stop(self, error: Exception) -> None:
        """Admit nothing any more; waiting tasks get ``error``, requests in flight go on."""
        self._stopped = error
        while self._queue:
            turn = self._queue.popleft().turn
            if not turn.done():
                turn.set_exception(error)

    def _update_limits(self, limits: RateHeaders | None) -> None:
        if limits is not None:
            self.requests.update_limit(limits.requests)
            self.tokens.update_limit(limits.tokens)

    def _is_too_fast(
        self, permit: Permit, retry_after: float | None, limits: RateHeaders | None
    ) -> bool:
        """Tell whether a refusal is about the rate, not about concurrency."""
        if limits is None:
            return retry_after is not None and self.requests.per_minute is not None
        requests_left, tokens_left = limits.requests_left, limits.tokens_left
        return (requests_left is not None and requests_left < 1) or (
            tokens_left is not None and tokens_left < max(permit.tokens, 1)
        )

    def _shrink(self, permit: Permit, bad_luck: int) -> None:
        alone = max(_troubled(self._admitted), _troubled(self._ended)) <= bad_luck
        before = self.concurrency.size
        self.concurrency.refused(permit.level, self.in_flight - 1, alone=alone)
        if self.concurrency.size != before:
            log.info("window %d of %d calls at once", self.concurrency.size, self.concurrency.cap)

    def _pause_all(
        self,
        permit: Permit,
        retry_after: float | None,
        reason: str,
        longest: float = LONGEST_PAUSE,
    ) -> None:
        """Admit nothing for as long as the server asks, or for twice as long as the last time."""
        now = self._now()
        is_new = permit.at >= self._paused_at  # not one more of the wave that caused the last pause
        if is_new:
            self._paused_at = now
            if retry_after is None:
                self._pause = min(max(2 * self._pause, FIRST_PAUSE), longest)
        wait = self._pause if retry_after is None else retry_after
        if now + wait > self.paused_until:
            self.paused_until, self.pause_reason = now + wait, reason
            if is_new:
                log.info("all calls pause for %.2f s: %s", wait, reason)

    def _pump(self) -> None:
        """Admit what may go now; set the alarm for the next one if only time is missing."""
        if not self._queue:
            return
        now = self._now()
        while self._queue:
            turn, tokens, again = self._queue[0]
            if turn.done():  # cancelled while waiting
                self._queue.popleft()
                continue
            if self.in_flight >= self.concurrency.size:
                return
            wait = self._delay(now)
            if wait > 0:
                self._wake_in(wait)
                return
            self._queue.popleft()
            turn.set_result(self._admit(now, tokens, again))

    def _delay(self, now: float) -> float:
        """Compute the seconds for which nothing may be admitted; none where it is not positive."""
        return max(self.paused_until - now, self.requests.delay(now), self.tokens.delay(now))

    def _admit(self, now: float, tokens: float, again: bool) -> Permit:
        self.requests.take(now)
        self.tokens.take(now, tokens)
        self.in_flight += 1
        permit = Permit(now, self.in_flight, tokens, again)
        self._admitted.append(permit)
        return permit

    def _wake_in(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._pump)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _troubled(permits: Iterable[Permit]) -> int:
    return sum(permit.troubled for permit in permits)


def _is_trouble(permits: Collection[Permit]) -> bool:
    """Tell whether at least half of them failed: more than bad luck."""
    return 2 * _troubled(permits) >= len(permits)
