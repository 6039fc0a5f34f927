"""A rate that several processes share: units are leased ahead, a window of time at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from trajudge.judges.engine.limiting.rates import SHARE, SLACK, RateLimiter
from trajudge.trajectories.util.errors import UserError

log = logging.getLogger(__name__)

AHEAD = (0.1, 2.0)  # seconds of the rate that one lease holds, at least and at most
ANSWERS = 4.0  # times that a lease takes fit into it: the next comes before it ends
GRACE = 1.0  # seconds after its window in which a unit still goes: timers come late
LOOK = 0.02  # seconds between looks at whether a lease has come


class RateWindow(NamedTuple):
    """``units`` that may go from ``wait`` seconds after the lease was asked for, at the rate."""

    units: float
    wait: float


LeaseUnits = Callable[[float], Awaitable[RateWindow]]
"""Lease at least so many units. Raises UserError."""


class _Window:
    __slots__ = ("begins", "ends", "units")

    def __init__(self, begins: float, ends: float, units: float) -> None:
        self.begins = begins
        self.ends = ends
        self.units = units


class LeasedRate(RateLimiter):
    """``per_minute`` over all who lease of it: a unit goes only within a window of this process.

    A window is as short as the answers to leases allow, because a process that dies takes its own
    with it. Half a window before its end the next is asked for; what is left of one is lost some
    time after its end. A limit that the server reports does not change the rate: every process sees
    that of all.
    """

    def __init__(self, per_minute: float, lease: LeaseUnits) -> None:
        super().__init__(per_minute)
        self._rate = per_minute * SHARE / 60.0
        self._size = max(1.0, AHEAD[0] * self._rate)
        self._lease = lease
        self._windows: deque[_Window] = deque()
        self._next = 0.0
        self._debt = 0.0
        self._asking: asyncio.Task[None] | None = None

    def delay(self, now: float) -> float:
        while self._windows and (self._windows[0].units <= 0 or self._windows[0].ends < now):
            self._debt -= min(0.0, self._windows.popleft().units)
            if self._windows:
                self._windows[0].units -= self._debt
                self._debt = 0.0
        left = sum(window.units for window in self._windows)
        if left <= self._size / 2:
            self._ask()
        if not self._windows:
            return LOOK
        return max(self._windows[0].begins, self._next) - SLACK - now

    def take(self, now: float, units: float = 1.0) -> None:
        if self._windows:
            self._windows[0].units -= units
        else:
            self._debt += units
        self._next = max(self._next, now) + units / self._rate

    def settle(self, units: float) -> None:
        if self._windows:
            self._windows[0].units -= units
        else:
            self._debt += units

    def update_limit(self, per_minute: float | None) -> None:
        """Keep the shared rate."""

    def _ask(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._take_lease())

    async def _take_lease(self) -> None:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        debt, self._debt = self._debt, 0.0
        try:
            window = await self._lease(max(self._size + debt, 1.0))
        except UserError as error:  # the store may be back at the next look
            self._debt += debt
            log.warning("no lease of the rate: %s", error)
            await asyncio.sleep(1.0)
            return
        begins = asked + window.wait
        ends = begins + window.units / self._rate + GRACE
        ahead = min(max(AHEAD[0], ANSWERS * (loop.time() - asked)), AHEAD[1])
        self._size = max(1.0, ahead * self._rate)
        self._windows.append(_Window(begins, ends, window.units - debt))
