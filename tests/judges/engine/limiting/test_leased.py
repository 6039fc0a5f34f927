"""Processes that lease of one rate keep to it together, and use it, while some of them die."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.judges.engine.parts import now, run
from trajudge.judges.engine.limiting.leased import LeasedRate, RateWindow
from trajudge.judges.engine.limiting.limiter import Limiter
from trajudge.judges.engine.limiting.rates import SHARE
from trajudge.trajectories.util.errors import UserError

RPM, LATENCY, AT_ONCE = 1_200.0, 0.2, 16


class SharedStore:
    """Grants windows one behind the other; every answer takes ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.due = 0.0
        self.leases = 0
        self.away = False

    async def lease(self, units: float) -> RateWindow:
        await asyncio.sleep(self.seconds / 2)
        if self.away:
            raise UserError("the store is away")
        begins = max(self.due, now())
        wait = begins - now()
        self.due = begins + units * 60 / (RPM * SHARE)
        self.leases += 1
        await asyncio.sleep(self.seconds / 2)
        return RateWindow(units, wait)


async def worker(store: SharedStore, sent: list[float]) -> None:
    limiter = Limiter(concurrency=AT_ONCE, rpm=LeasedRate(RPM, store.lease))

    async def requests() -> None:
        while True:
            permit = await limiter.acquire()
            sent.append(now())
            await asyncio.sleep(LATENCY)
            limiter.answered(permit, None, None)

    await asyncio.gather(*(requests() for _ in range(AT_ONCE)))


async def with_deaths(store: SharedStore, seconds: float, every: float) -> np.ndarray:
    """Let three workers send, of which the oldest dies each ``every`` seconds and is replaced; the
    times of what was sent."""
    sent: list[float] = []
    begun = now()
    running = [asyncio.create_task(worker(store, sent)) for _ in range(3)]
    while now() < begun + seconds:
        await asyncio.sleep(every)
        running.pop(0).cancel()
        running.append(asyncio.create_task(worker(store, sent)))
    for task in running:
        task.cancel()
    times = np.array(sent) - begun
    return times[times <= seconds]


@pytest.mark.parametrize("answer", [0.002, 0.02])
def test_the_rate_is_used_though_workers_die(answer: float) -> None:
    store = SharedStore(answer)
    times = run(with_deaths(store, 120.0, 8.0))
    assert 0.98 * 2 * RPM <= len(times) <= 1.0 * 2 * RPM
    minutes = np.searchsorted(times, times + 60.0) - np.arange(len(times))
    assert minutes.max() <= RPM + RPM / 60, "a second of the rate above it in any minute"
    assert store.leases < 15 * 120


def test_a_slow_store_is_asked_for_more_at_once() -> None:
    store = SharedStore(0.5)
    times = run(with_deaths(store, 120.0, 120.0))
    assert 0.95 * 2 * RPM <= len(times) <= 1.0 * 2 * RPM
    assert store.leases < 2 * 120


def test_nothing_is_sent_without_the_store() -> None:
    store = SharedStore(0.01)

    async def away() -> list[float]:
        sent: list[float] = []
        task = asyncio.create_task(worker(store, sent))
        await asyncio.sleep(10.0)
        store.away = True
        await asyncio.sleep(0.2)
        before = len(sent)
        await asyncio.sleep(20.0)
        assert len(sent) - before <= RPM / 60, "no more than was leased"
        store.away = False
        await asyncio.sleep(10.0)
        task.cancel()
        return sent[before:]

    assert len(run(away())) > 8 * RPM / 60
