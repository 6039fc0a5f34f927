"""Retries of failed calls (tenacity); the SDKs' own retries are off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from trajudge.judges.adapters.errors import RateLimited, Retryable

if TYPE_CHECKING:
    import numpy as np

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
        """Return the result of the first attempt that succeeds; ``attempt`` is told whether it is a
        retry.

        Raises CallFailed after the last attempt. Most calls succeed at once, and tenacity takes
        longer to set up than the rest of the engine to run: it therefore starts after the first
        failure.
        """
        first: list[Retryable] = []
        try:
            return await attempt(False)
        except Retryable as error:
            first.append(error)
        course = _Course(self)
        trying = AsyncRetrying(
            sleep=self._sleep,
            retry=retry_if_exception_type(Retryable),
            wait=course.wait,
            stop=course.is_over,
            reraise=True,
        )

        async def once() -> T:
            if first:
                raise first.pop()
            return await attempt(True)

        return await trying(once)

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


class _Course:
    """Failures of one call so far. tenacity asks ``wait`` first and ``is_over`` then."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._failures = 0
        self._failed_at: float | None = None
        self._wait = 0.0

    def wait(self, state: RetryCallState) -> float:
        error = _error(state)
        if not isinstance(error, RateLimited):
            self._failures += 1
        backoff = self._retry.backoff(state.attempt_number)
        self._wait = backoff if error.retry_after is None else error.retry_after
        return self._wait

    def is_over(self, state: RetryCallState) -> bool:
        now = asyncio.get_running_loop().time()
        if self._failed_at is None:
            self._failed_at = now
        too_late = now + self._wait - self._failed_at > self._retry.seconds
        return too_late or self._failures >= self._retry.attempts


def _error(state: RetryCallState) -> Retryable:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Retryable):
        raise TypeError(f"not retryable: {error!r}")
    return error
