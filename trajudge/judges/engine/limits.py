"""When a request may go out: a concurrency that adapts to refusals, requests and tokens a
minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from trajudge.judges.adapters.base import RateHeaders

SHARE = 0.995  # of a limit that the server reports: its clock is not ours

SLACK = 0.1  # seconds of the rate that may be caught up at once, for timers that come late

CUT = 0.85  # what a refusal leaves of a pace: somebody else draws on the same limit

REGROWTH = 0.05  # of the limit, a second

EASY_PROBE = 8  # answers before one more is tried, at first

SAME = 0.1  # sizes this close are one limit, met again

RARE_PROBE = 8  # times the window's size: answers before one more is tried, at the least often


class RateLimiter:
    """Spaces requests (or tokens) evenly at a share of ``per_minute``; None: no limit known.

    The generic cell rate algorithm: ``_due`` is when the next unit would be due if every unit so
    far had come on time.
    """

    def __init__(self, per_minute: float | None = None) -> None:
        self.per_minute = per_minute
        self._fixed = per_minute
        self._due = 0.0
        self._share = SHARE
        self._cut_at = 0.0

    def delay(self, now: float) -> float:
        """Return the seconds until the next unit may go; 0 or less: now."""
        return 0.0 if self.per_minute is None else self._due - SLACK - now

    def take(self, now: float, units: float = 1.0) -> None:
        """Count ``units`` that go now."""
        if self.per_minute is not None:
            self._due = max(self._due, now) + units * 60.0 / (self.per_minute * self.share(now))

    def settle(self, units: float) -> None:
        """Correct an estimate by the units (negative: given back) that it was wrong by."""
        if self.per_minute is not None:
            self._due += units * 60.0 / (self.per_minute * SHARE)

    def share(self, now: float) -> float:
        """Return the share of the limit that is used now."""
        return min(SHARE, self._share + REGROWTH * (now - self._cut_at))

    def update_limit(self, per_minute: float | None) -> None:
        """Take over the limit that the server reports; a lower one set by the user stays."""
        if per_minute is not None and per_minute > 0:
            self.per_minute = min(per_minute, self._fixed or per_minute)

    def refused(self, now: float) -> None:
        """Use less after a refusal in spite of the pace, and return to the full share slowly."""
        self._share = self.share(now) * CUT
        self._cut_at = now


class AdaptiveConcurrency:
    """Number of requests that may be in flight at once, at most ``cap``.

    A refusal shrinks it to what the server is holding at that moment, which is a measurement and
    not a guess. It then grows by one, and by more while that succeeds, each time only after its
    present size is known to be admitted; a size that is refused again and again is tried less and
    less often.
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.size = cap
        self._proven = 0  # the largest number in flight that is known to be admitted
        self._limit = 0  # the size that the last refusal left
        self._step = 1
        self._answers = 0  # since the last change
        self._patience = EASY_PROBE

    def answered(self, level: int) -> None:
        """Count an answer to the request that was the ``level``-th in flight when it was sent."""
        self._answers += 1
        self._proven = max(self._proven, level)
        if self._proven >= self.size < self.cap and self._answers >= self._patience:
            self.size = min(self.cap, self.size + self._step)
            self._step *= 2
            self._answers = 0

    def refused(self, level: int, held: int, *, alone: bool) -> None:
        """Count a refusal of the ``level``-th in flight; the server holds ``held`` others.

        ``alone``: hardly any other was refused of late. Below the present size, or at a level that
        is known to be admitted, that is bad luck and no limit.
        """
        if alone and (level < self.size or level <= self._proven):
            return
        self.size = self._proven = max(1, min(self.size, held))
        if self._answers:  # not one more refusal of the same wave
            is_the_same = abs(self.size - self._limit) <= SAME * self.size
            patience = 2 * self._patience if is_the_same else EASY_PROBE
            self._patience = min(patience, RARE_PROBE * self.size)
        self._limit = self.size
        self._step = 1
        self._answers = 0


log = logging.getLogger(__name__)

RECENT = 32  # requests whose fate decides between bad luck and trouble

BAD_LUCK = 5  # refusals among them that are no sign of a limit

BAD_LUCK_WITH_TIME = 8  # where the server says when to come back: that is about a moment

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
            self._shrink(permit, BAD_LUCK if retry_after is None else BAD_LUCK_WITH_TIME)
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
