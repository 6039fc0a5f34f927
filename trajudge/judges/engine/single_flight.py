"""Single flight: identical requests that are made at the same time share one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Shared(Generic[T]):
    """Work under way, and a future for each of its waiters: resolved when the work has ended."""

    __slots__ = ("task", "waiters")

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiters: list[asyncio.Future[None]] = []


class SingleFlight(Generic[T]):
    """Work under way, by key. A key is free again when its work has ended."""

    def __init__(self) -> None:
        self._shared: dict[str, _Shared[T]] = {}

    async def run(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """Return the result of the work under way for ``key``, starting ``work()`` if there is
        none, and whether this call started it.

        One waiter that is cancelled leaves the others undisturbed; with the last one the work
        itself is cancelled.
        """
        loop = asyncio.get_running_loop()
        shared = self._shared.get(key)
        is_first = shared is None
        if shared is None:
            shared = self._shared[key] = _Shared(loop.create_task(work()))
            shared.task.add_done_callback(partial(self._finished, key, shared))
        waiter: asyncio.Future[None] = loop.create_future()
        shared.waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            shared.waiters.remove(waiter)
            if not shared.waiters and not shared.task.done():
                self._forget(key, shared)
                shared.task.cancel()
            raise
        return shared.task.result(), is_first

    async def drain(self) -> None:
        """Cancel the work under way and wait for its end."""
        tasks = [shared.task for shared in self._shared.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, key: str, shared: _Shared[T], task: asyncio.Task[T]) -> None:
        self._forget(key, shared)
        if not task.cancelled():
            task.exception()  # seen, even if every waiter was cancelled
        for waiter in shared.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _forget(self, key: str, shared: _Shared[T]) -> None:
        if self._shared.get(key) is shared:
            del self._shared[key]
