"""A coroutine to its end from code that is not asynchronous, also inside a running loop."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

from trajudge.eval.runs.workers import StopSignal

R = TypeVar("R")


def run_in_thread(work: Callable[[StopSignal], Coroutine[Any, Any, R]]) -> R:
    """Run ``work`` in a loop of a thread of its own and return its result; a notebook's own loop,
    and its signals, stay as they are.

    The first Ctrl-C interrupts the stop signal that ``work`` is given, the second cancels it, the
    third gives up waiting. Raises KeyboardInterrupt unless ``work`` ended by itself.
    """
    stop, done = StopSignal(), Future[R]()
    interrupts: list[Callable[[], object]] = []

    async def main() -> R:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("asyncio.run runs its work in a task")
        cancel = task.cancel
        interrupts[:] = [
            lambda: loop.call_soon_threadsafe(stop.interrupt),
            lambda: loop.call_soon_threadsafe(cancel),
        ]
        return await work(stop)

    def target() -> None:
        try:
            done.set_result(asyncio.run(main()))
        except BaseException as error:  # all of it is the caller's
            done.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(target,), name="trajudge", daemon=True).start()
    steps = iter(interrupts)
    with _heard(done, steps):
        return _wait(done, steps)


@contextmanager
def _heard(done: Future[R], steps: Iterator[Callable[[], object]]) -> Iterator[None]:
    """Take a step at every Ctrl-C, without an exception: one that is raised while the interpreter
    calls back (collecting garbage, say) is printed and lost, and Ctrl-C with it.

    Elsewhere than in the main thread, and where somebody hears the signal already, nothing changes.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def come(number: int, frame: FrameType | None) -> None:
        step = None if done.done() else next(steps, None)
        if step is None:
            signal.default_int_handler(number, frame)
        else:
            with suppress(RuntimeError):  # the loop was closed in between
                step()

    signal.signal(signal.SIGINT, come)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _wait(done: Future[R], interrupts: Iterator[Callable[[], object]]) -> R:
    while True:
        try:
            return done.result()
        except asyncio.CancelledError:
            raise KeyboardInterrupt("cancelled") from None
        except KeyboardInterrupt:
            interrupt = next(interrupts, None)
            if interrupt is None or done.done():
                raise
            interrupt()
