"""Processes that work for this one: they end with it, and leave Ctrl-C to it."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import TypeVar

from trajudge.trajectories.util.errors import UserError

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 4  # items that are taken for each worker before the first of them is done


def follow_parent() -> None:
    """Set a worker process up. Ctrl-C is the parent's business: the worker ends the job that it
    has in hand, and if the parent is gone, itself."""
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=([parent.sentinel],), daemon=True).start()


def _end_with(sentinels: Iterable[int]) -> None:
    wait(list(sentinels))
    os._exit(1)


@contextmanager
def cancelled(pool: Executor, halt: Callable[[], None] = lambda: None) -> Iterator[Executor]:
    """Open the pool; when it is left by an exception, nothing that waits is begun, and ``halt`` is
    called before what is under way is waited for."""
    try:
        yield pool
    except BaseException:
        halt()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def worked_on(work: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yield what ``work`` gives of each item, in the order of the items. It is done here with one
    worker, else in so many processes, while the next items are made here.

    Raises UserError if a process dies.
    """
    if workers == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[R]] = deque()
    with cancelled(ProcessPoolExecutor(workers, get_context("spawn"), follow_parent)) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _AHEAD * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process ended of a sudden: run it again, with fewer --workers if the "
                "memory is short"
            ) from error
