"""Work done in threads a few items ahead of whoever takes the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

# Enough to hide latency; the hub limits requests, not bandwidth.
_WORKERS = 4


def prefetch(function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
    """Yield ``(item, function(item))`` in order, computed in threads a few items ahead."""
    pool = ThreadPoolExecutor(_WORKERS)
    pending = deque[tuple[T, Future[R]]]()
    try:
        for item in items:
            pending.append((item, pool.submit(function, item)))
            if len(pending) > _WORKERS:
                first, future = pending.popleft()
                yield first, future.result()
        for first, future in pending:
            yield first, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
