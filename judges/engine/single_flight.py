"""Single flight: identical requests that are made at the same time share one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Shared(Generic[T]):
    """Work under way and the number of its waiters."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiting = 0


class SingleFlight(Generic[T]):
    """Work under way, by key. A key is free again when its work has ended."""

    def __init__(self) -> None:
        self._shared: dict[str, _Shared[T]] = {}

    async def run(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the work under way for ``key``, starting ``work()`` if there is
        none.

        One waiter that is cancelled leaves the others undisturbed; with the last one the work
        itself is cancelled.
        """
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = _Shared(asyncio.create_task(work()))
            shared.task.add_done_callback(lambda _: self._finished(key, shared))
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                self._forget(key, shared)
                shared.task.cancel()

    async def drain(self) -> None:
        """Cancel the work under way and wait for its end."""
        tasks = [shared.task for shared in self._shared.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, key: str, shared: _Shared[T]) -> None:
        self._forget(key, shared)
        if not shared.task.cancelled():
            shared.task.exception()  # seen, even if every waiter was cancelled

    def _forget(self, key: str, shared: _Shared[T]) -> None:
        if self._shared.get(key) is shared:
            del self._shared[key]
