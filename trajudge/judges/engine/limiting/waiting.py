"""Reasons for which an engine waits, as text for the progress line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trajudge.trajectories.util.terminal import count_of

if TYPE_CHECKING:
    from trajudge.judges.engine.engine import Engine

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
