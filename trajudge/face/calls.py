"""Arguments of a public call: keywords as a settings record, and coroutines run to their end from
code that is not asynchronous.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from reprlib import repr as short
from types import FrameType, UnionType
from typing import Any, TypeVar

from trajudge.eval.accept.settings import AcceptConfig
from trajudge.eval.runs.jobs import StopSignal
from trajudge.eval.runs.settings import BatchConfig, RunRequest
from trajudge.eval.select.settings import SelectConfig
from trajudge.eval.settings import AuditConfig, ScoreConfig
from trajudge.util.errors import did_you_mean
from trajudge.util.settings import Setting, Settings, keywords_of

# Settings that say what is read, printed and written where: arguments here, or of no use.
_OF_A_TERMINAL = {
    *("runs", "run", "judgments", "full", "json", "json_output", "freeze", "plot", "dry_run"),
    *("log_format", "plan", *BatchConfig.model_fields),
}
# What of the command's settings a score in memory depends on.
_SCORED = {
    *("missing", "protocol", "by", "split", "task_id", "training_set", "question", "seed"),
    "resamples",
}
_NOT_SCORED = keywords_of(ScoreConfig).keys() - _SCORED

# The record whose settings are the keywords of a function, and those that are none.
_KEYWORDS: Mapping[str, tuple[type[Settings], set[str]]] = {
    "judge": (RunRequest, {*_OF_A_TERMINAL, "data", "judges"}),
    "score": (ScoreConfig, _NOT_SCORED),
    "compare": (ScoreConfig, _NOT_SCORED | {"by"}),
    "select": (SelectConfig, _OF_A_TERMINAL),
    "accept": (AcceptConfig, {*_OF_A_TERMINAL, "annotations", "labels_by"}),
    "audit": (AuditConfig, {*_OF_A_TERMINAL, "out"}),
}


def keywords(call: str) -> dict[str, Setting]:
    """Return the settings of a command that a public function takes as keywords, by name."""
    kind, hidden = _KEYWORDS[call]
    return {name: one for name, one in keywords_of(kind).items() if name not in hidden}


def check_keywords(call: str, given: Iterable[str]) -> None:
    """Raise TypeError for a keyword that a public function does not have, as Python does."""
    known = keywords(call)
    for name in given:
        if name not in known:
            close = did_you_mean(name, known)
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{close}")


def one_or_several(call: str, given: Any, kind: type | UnionType, wanted: str) -> list[Any]:
    """Return what was given, one of ``kind`` or several, as a list. Raises TypeError that names
    what is of another kind and what is ``wanted``."""
    single = isinstance(given, kind) or not isinstance(given, Iterable)
    several = [given] if single else list(given)
    for one in several:
        if not isinstance(one, kind):
            found = f"{short(one)} is of type {type(one).__name__}"
            raise TypeError(f"{call}: {found}: give {wanted}")
    return several


ResultT = TypeVar("ResultT")


def run_in_thread(work: Callable[[StopSignal], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Run ``work`` in a loop of a thread of its own and return its result; a notebook's own loop,
    and its signals, stay as they are.

    The first Ctrl-C interrupts the stop signal that ``work`` is given, the second cancels it, the
    third gives up waiting. Raises KeyboardInterrupt unless ``work`` ended by itself.
    """
    stop, done = StopSignal(), Future[ResultT]()
    interrupts: list[Callable[[], object]] = []

    async def main() -> ResultT:
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
def _heard(done: Future[ResultT], steps: Iterator[Callable[[], object]]) -> Iterator[None]:
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


def _wait(done: Future[ResultT], interrupts: Iterator[Callable[[], object]]) -> ResultT:
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
