"""The one gate that every request of a run passes: tasks wait here, in order, and nowhere else.

A task that backs off alone does not help: its place is taken by the next one. So what a single
answer says of the server (a limit, a refusal, a pause that it asks for) holds for all.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterable
from typing import Final

from trajudge.judges.adapters.base import RateHeaders
from trajudge.judges.engine.limiting.limits import Pace, Window

log = logging.getLogger(__name__)

RECENT = 32  # requests whose fate decides between bad luck and trouble
BAD_LUCK = 5  # refusals among them that are no sign of a limit
FIRST_PAUSE = 0.1  # seconds, doubled while the trouble lasts
LONGEST_PAUSE = 30.0


class Ticket:
    """One admission: when, as the how-manieth in flight, for how many tokens."""

    __slots__ = ("at", "level", "tokens", "troubled")

    def __init__(self, at: float, level: int, tokens: float) -> None:
        self.at = at
        self.level = level
        self.tokens = tokens
        self.troubled = False


class Gate:
    """Admits at most ``concurrency`` requests at once, fewer where the server says so.

    ``rpm`` and ``tpm`` are requests and tokens a minute that the user fixes; limits that the
    server tells come on top. Nobody is admitted before ``paused_until``, for ``pause_reason``.
    Times are those of the running event loop's clock.
    """

    def __init__(
        self, *, concurrency: int = 64, rpm: float | None = None, tpm: float | None = None
    ) -> None:
        self.window: Final = Window(concurrency)
        self.requests: Final = Pace(rpm)
        self.tokens: Final = Pace(tpm)
        self.in_flight = 0
        self._queue: deque[tuple[asyncio.Future[Ticket], float]] = deque()
        self._admitted: deque[Ticket] = deque(maxlen=RECENT)
        self._ended: deque[Ticket] = deque(maxlen=RECENT)
        self._pause = 0.0
        self._paused_at = 0.0
        self.paused_until = 0.0
        self.pause_reason = ""
        self._alarm: asyncio.TimerHandle | None = None
        self._stopped: Exception | None = None

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit of tokens is known, so that it matters how many a request takes."""
        return self.tokens.per_minute is not None

    async def enter(self, tokens: float = 0.0, *, again: bool = False) -> Ticket:
        """Wait to be admitted; ``again`` goes before those that wait for the first time.

        Every ticket is handed back to exactly one of ``answered``, ``refused``, ``failed`` and
        ``left``. Raises what ``stop`` was given.
        """
        if self._stopped is not None:
            raise self._stopped
        turn: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        if again:
            self._queue.appendleft((turn, tokens))
        else:
            self._queue.append((turn, tokens))
        self._pump()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.left(turn.result())
            raise

    def answered(self, ticket: Ticket, limits: RateHeaders | None, tokens: float | None) -> None:
        """The request was answered; ``tokens`` is what it really took, where that is known."""
        self._pause = self._pause / 2 if self._pause > FIRST_PAUSE else 0.0
        self._ended.append(ticket)
        self.window.answered(ticket.level)
        self._told(limits)
        if tokens is not None:
            self.tokens.settle(tokens - ticket.tokens)
        self.left(ticket)

    def refused(
        self, ticket: Ticket, retry_after: float | None, limits: RateHeaders | None
    ) -> None:
        """The server said 429: too fast if its own headers say so, else too many at once."""
        self._told(limits)
        ticket.troubled = True
        self._ended.append(ticket)
        if self._is_too_fast(ticket, retry_after, limits):
            if ticket.at >= self._paused_at:
                self.requests.refused(self._now())
                self.tokens.refused(self._now())
        else:
            self._shrink(ticket)
        if (retry_after is not None and _is_trouble(self._admitted)) or self.in_flight == 1:
            told = "" if retry_after is None else f", Retry-After {retry_after:g} s"
            self._pause_all(ticket, retry_after, "429" + told)
        self.left(ticket)

    def failed(self, ticket: Ticket, retry_after: float | None = None) -> None:
        """The server is overloaded or out of reach: a pause for all if most fare so."""
        ticket.troubled = True
        self._ended.append(ticket)
        if _is_trouble(self._ended):
            self._shrink(ticket)
            self._pause_all(ticket, retry_after, "the server is overloaded or out of reach")
        self.left(ticket)

    def left(self, ticket: Ticket) -> None:
        """The request ended in a way that says nothing about the server."""
        self.in_flight -= 1
        self._pump()

    def stop(self, error: Exception) -> None:
        """Admit nothing any more; whoever waits gets ``error``. What is in flight goes on."""
        self._stopped = error
        while self._queue:
            turn, _ = self._queue.popleft()
            if not turn.done():
                turn.set_exception(error)

    def _told(self, limits: RateHeaders | None) -> None:
        if limits is not None:
            self.requests.told(limits.requests)
            self.tokens.told(limits.tokens)

    def _is_too_fast(
        self, ticket: Ticket, retry_after: float | None, limits: RateHeaders | None
    ) -> bool:
        """Whether a refusal is about the rate and not about the number at once."""
        if limits is None:
            return retry_after is not None and self.requests.per_minute is not None
        requests_left, tokens_left = limits.requests_left, limits.tokens_left
        return (requests_left is not None and requests_left < 1) or (
            tokens_left is not None and tokens_left < max(ticket.tokens, 1)
        )

    def _shrink(self, ticket: Ticket) -> None:
        alone = max(_troubled(self._admitted), _troubled(self._ended)) <= BAD_LUCK
        before = self.window.size
        self.window.refused(ticket.level, self.in_flight - 1, alone=alone)
        if self.window.size != before:
            log.info("window %d of %d calls at once", self.window.size, self.window.cap)

    def _pause_all(self, ticket: Ticket, retry_after: float | None, reason: str) -> None:
        """Admit nothing for as long as the server asks, or for twice as long as the last time."""
        now = self._now()
        is_new = ticket.at >= self._paused_at  # not one more of the wave that caused the last pause
        if is_new:
            self._paused_at = now
            if retry_after is None:
                self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
        wait = self._pause if retry_after is None else retry_after
        if now + wait > self.paused_until:
            self.paused_until, self.pause_reason = now + wait, reason
            if is_new:
                log.info("all calls pause for %.2f s: %s", wait, reason)

    def _pump(self) -> None:
        """Admit who may go now; set the alarm for the next one if only time is missing."""
        now = self._now()
        while self._queue:
            turn, tokens = self._queue[0]
            if turn.done():  # cancelled while waiting
                self._queue.popleft()
                continue
            if self.in_flight >= self.window.size:
                return
            wait = max(self.paused_until - now, self.requests.delay(now), self.tokens.delay(now))
            if wait > 0:
                self._wake_in(wait)
                return
            self._queue.popleft()
            turn.set_result(self._admit(now, tokens))

    def _admit(self, now: float, tokens: float) -> Ticket:
        self.requests.take(now)
        self.tokens.take(now, tokens)
        self.in_flight += 1
        ticket = Ticket(now, self.in_flight, tokens)
        self._admitted.append(ticket)
        return ticket

    def _wake_in(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._pump)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _troubled(tickets: Iterable[Ticket]) -> int:
    return sum(ticket.troubled for ticket in tickets)


def _is_trouble(tickets: Collection[Ticket]) -> bool:
    """At least half of them: more than bad luck."""
    return 2 * _troubled(tickets) >= len(tickets)
