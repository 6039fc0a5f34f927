"""Retries of failed calls, and the circuit breaker that ends a run that cannot succeed."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from trajudge.judges.adapters.errors import (
    BadReply,
    Blocked,
    CallFailed,
    Final,
    Forbidden,
    NoAccess,
    RateLimited,
    Retryable,
    ServerFailed,
    Unreachable,
)
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    import numpy as np


SILENT_ROUNDS = 3

WITHOUT_ANSWER = 10

FAILING_REQUESTS, FAILING_SECONDS = 30, 120.0

# What differs between two errors of one reason: quoted words, and names and numbers with a digit.
_VARYING = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|\S*\d\S*")


class CircuitBreaker:
    """Watches the failures of calls; ``error`` is set once the run is unrecoverable.

    That is after the first NoAccess; and without a single answer ever after ten calls that failed
    for good in the same words or with a 403, ten answers that cannot be used (which are paid all
    the same), three rounds of silence (calls that were under way together count as one), or two
    minutes in which thirty requests got 500; and when the server asks for a longer wait than a call
    may take, as for a daily quota.
    """

    def __init__(self, endpoint: str, patience: float) -> None:
        self.error: UserError | None = None
        self._endpoint = endpoint
        self._patience = patience
        self._reached = self._answered = False
        self._ended = Counter[str]()
        self._unusable = self._rounds = self._failing = 0
        self._failing_since = float("inf")
        self._last_round = float("-inf")

    def answered(self) -> None:
        """Record that the server answers to this key."""
        self._reached = self._answered = True

    def failed(
        self, error: CallFailed, sent_at: float, now: float, *, again: bool = False
    ) -> UserError | None:
        """Record a failed attempt at ``now`` of a call sent at ``sent_at``, ``again`` if it had
        been tried before; return the error that ends the run, if any."""
        match error:
            case NoAccess():
                kept = "; everything that was answered is kept" if self._answered else ""
                self._end(f"{error}{kept}")
            case BadReply() if not self._answered:
                self._unusable += 1
                if self._unusable >= WITHOUT_ANSWER:
                    self._end_until_mended(
                        f"{self._unusable} answers came and none can be used: {error}"
                    )
            case ServerFailed() if not self._answered:
                self._failed(error, now, again=again)
            case Unreachable() if not self._reached:
                self._silent(error, sent_at, now)
            case Final():
                self.gave_up(error)
            case RateLimited() if (error.retry_after or 0.0) > self._patience:
                self._end(
                    f"{self._endpoint} asks to wait {error.retry_after:.0f} s ({error}): start the "
                    "same command again later; everything that was answered is kept"
                )
        self._reached = self._reached or not isinstance(error, Unreachable)
        return self.error

    def gave_up(self, error: CallFailed) -> UserError | None:
        """Record a call that is not tried again; return the error that ends the run, if any. To be
        called after the last of a call's retries; ``failed`` does it for what is Final.

        One failure may be about one prompt, ten of a kind are about all; of a 500 that takes more
        requests, and time.
        """
        if self._answered or isinstance(error, ServerFailed):
            return None
        is_refused = isinstance(error, Forbidden | Blocked)
        kind = "403" if is_refused else " ".join(_VARYING.sub("", str(error)).split())
        self._ended[kind] += 1
        if self._ended[kind] >= WITHOUT_ANSWER:
            self._end_until_mended(
                f"{self._ended[kind]} requests were refused and none answered: {error}"
            )
        return self.error

    def _end(self, why: str) -> None:
        self.error = self.error or UserError(why)

    def _end_until_mended(self, what: str) -> None:
        self._end(f"{what}; when that is mended, start again with --retry-failed")

    def _failed(self, error: ServerFailed, now: float, *, again: bool) -> None:
        """End the run after so many requests that failed in so long a time: some may fail for ever
        while the others would not, and some of a minute's outage."""
        self._failing += not again
        self._failing_since = min(self._failing_since, now)
        seconds = now - self._failing_since
        if self._failing >= FAILING_REQUESTS and seconds >= FAILING_SECONDS:
            self._end_until_mended(
                f"{self._failing} requests in {seconds / 60:.0f} minutes failed and none was "
                f"answered: {error}"
            )

    def _silent(self, error: Unreachable, sent_at: float, now: float) -> None:
        if sent_at < self._last_round:
            return
        self._last_round = now
        self._rounds += 1
        if self._rounds >= SILENT_ROUNDS:
            self._end(
                f"no answer from {self._endpoint} ({error}): check that the server runs there "
                "and that --base-url is right"
            )


T = TypeVar("T")


class Retry:
    """Retry policy of a call.

    At most ``attempts`` in all, and none that would start later than ``seconds`` after the first
    failure. A 429 is flow control, not a failure of the call: only the time limits it. Where the
    server names no wait, it is ``first * 2**n``, at most ``longest``, shortened by up to a half
    with ``random`` so that calls that failed together do not return together.
    """

    def __init__(
        self,
        random: np.random.Generator,
        *,
        attempts: int = 6,
        seconds: float = 900.0,
        first: float = 0.25,
        longest: float = 30.0,
    ) -> None:
        self.wakes: list[float] = []  # when calls that wait are tried again, by the loop's clock
        self.attempts = attempts
        self.seconds = seconds
        self._random = random
        self._first = first
        self._longest = longest

    async def call(self, attempt: Callable[[bool], Awaitable[T]]) -> T:
        """Return the result of the first attempt that succeeds; ``attempt`` is given whether it is
        a retry. Raises CallFailed after the last attempt."""
        attempts = failures = 0
        failed_at: float | None = None
        while True:
            try:
                return await attempt(attempts > 0)
            except Retryable as error:
                attempts += 1
                failures += not isinstance(error, RateLimited)
                now = asyncio.get_running_loop().time()
                failed_at = now if failed_at is None else failed_at
                backoff = self.backoff(attempts)
                wait = backoff if error.retry_after is None else error.retry_after
                if failures >= self.attempts or now + wait - failed_at > self.seconds:
                    raise
            await self._sleep(wait)

    async def _sleep(self, seconds: float) -> None:
        wake = asyncio.get_running_loop().time() + seconds
        self.wakes.append(wake)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.wakes.remove(wake)

    def backoff(self, attempts: int) -> float:
        """Draw the seconds to wait after the given number of attempts."""
        wait = min(self._first * 2.0 ** (attempts - 1), self._longest)
        return float(wait * self._random.uniform(0.5, 1.0))
