"""Judging many runs in worker processes, none of which may take longer than its time limit.

The limit is in seconds of the processor, which the system counts: a busy machine makes no run slow.
A run that waits instead, such as for a disk that does not answer, has ``PATIENCE`` times as long.

A worker that is over time is killed and replaced: its run is unknown, with that reason, and the
batch goes on. Runs are handed out one at a time, so that a slow one delays no other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
from msgspec import Struct

from trajudge.rules.verdict import Outcome, Verdict
from trajudge.rules.verified.backend import State
from trajudge.rules.verified.dataset import Task
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network.sites import load_hosts
from trajudge.rules.verified.runs.files import RunFiles, read_answer, read_trace, run_files
from trajudge.rules.verified.runs.results import TaskResult, result_of
from trajudge.rules.verified.state import run_states
from trajudge.trajectories.util.errors import UserError

SECONDS = 60.0
PATIENCE = 10
_RESULT = msgspec.msgpack.Decoder(TaskResult)


class Batch(Struct, frozen=True, kw_only=True):
    """What to judge: the runs of ``ids`` below ``folder``. ``seconds`` is the limit of one run,
    ``states`` what the probes say now, for runs that did not record it."""

    tasks: Mapping[str, Task]
    folder: Path
    ids: Sequence[str]
    evaluator: VerifiedEvaluator
    steps: Mapping[str, float]
    states: Mapping[str, State] = {}
    seconds: float = SECONDS


def judged(batch: Batch, task_id: str) -> TaskResult:
    """Return the result of one run; a file that cannot be read makes it unknown, with the
    reason."""
    start = time.perf_counter()
    task = batch.tasks[task_id]
    pages = None
    try:
        files = run_files(batch.folder, task.task_id)
        trace = read_trace(files.trace)
        pages = len(trace.documents) if trace is not None else None
        states = run_states(files.state, batch.states) if task.backend_checks else None
        evaluator = located(batch.evaluator, files)
        verdict = evaluator.evaluate(task, read_answer(files.answer), trace, states)
    except UserError as error:
        verdict = Verdict(outcome=Outcome.UNKNOWN, reasons=(str(error),))
    steps = batch.steps.get(task_id, pages)
    return result_of(task, verdict, steps, time.perf_counter() - start)


def located(evaluator: VerifiedEvaluator, files: RunFiles) -> VerifiedEvaluator:
    """Return the evaluator with the addresses that the run itself says, where nobody gave others:
    runs of several days may have had their sites in several places. Raises UserError."""
    if files.config is None or evaluator.hosts:
        return evaluator
    return replace(evaluator, hosts=load_hosts(files.config))


def judge_all(batch: Batch, workers: int, tell: Callable[[int, int], None]) -> list[TaskResult]:
    """Return the results of all runs, in the order of ``ids``. ``tell`` hears how many are done."""
    results: dict[str, TaskResult] = {}
    for task_id, result in _results(batch, max(1, min(workers, len(batch.ids)))):
        results[task_id] = result
        tell(len(results), len(batch.ids))
    return [results[task_id] for task_id in batch.ids]


class _Worker:
    """A process, what it is at, and since when."""

    def __init__(self, batch: Batch) -> None:
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(batch, theirs), daemon=True
        )
        self.process.start()
        theirs.close()
        self.task_id: str | None = None
        self.since = 0.0

    def give(self, task_id: str) -> None:
        self.task_id = task_id
        self.since = time.monotonic()
        self.pipe.send(task_id)

    def ended_by_limit(self) -> bool:
        """Tell whether the system ended the process for the processor time that it used."""
        self.process.join(timeout=1)
        return self.process.exitcode == -getattr(signal, "SIGPROF", 0)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(batch: Batch, pipe: Connection) -> None:
    """Run a worker: an id in, a result out, until the pipe closes."""
    try:
        while True:
            task_id = pipe.recv()
            with _processor_limit(batch.seconds):
                result = judged(batch, task_id)
            pipe.send_bytes(msgspec.msgpack.encode(result))
    except (EOFError, OSError, KeyboardInterrupt):
        os._exit(0)


@contextmanager
def _processor_limit(seconds: float) -> Iterator[None]:
    """End this process once the block has used so much of the processor, where systems can."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _results(batch: Batch, count: int) -> Iterator[tuple[str, TaskResult]]:
    left = list(reversed(batch.ids))
    workers: list[_Worker] = []
    try:
        while left or any(worker.task_id for worker in workers):
            while left and len(workers) < count:
                workers.append(_Worker(batch))
                workers[-1].give(left.pop())
            yield from _collected(batch, workers, left)
    finally:
        for worker in workers:
            worker.stop()


def _collected(
    batch: Batch, workers: list[_Worker], left: list[str]
) -> Iterator[tuple[str, TaskResult]]:
    """Yield what the workers finished since, and what was taken from them; idle ones get more
    work."""
    busy = [worker for worker in workers if worker.task_id is not None]
    now = time.monotonic()
    patience = min(batch.seconds * PATIENCE - (now - worker.since) for worker in busy)
    ready = wait([worker.pipe for worker in busy], timeout=max(0.0, patience))
    for worker in busy:
        task_id = str(worker.task_id)
        result = _received(worker) if worker.pipe in ready else None
        late = time.monotonic() - worker.since > batch.seconds * PATIENCE
        if result is None and worker.pipe not in ready and not late:
            continue
        if result is None:
            result = _lost(batch, task_id, late=late or worker.ended_by_limit())
            worker.stop()
            workers.remove(worker)
        elif left:
            worker.give(left.pop())
        else:
            worker.task_id = None
        yield task_id, result


def _received(worker: _Worker) -> TaskResult | None:
    """Return what a worker sent; None if it died instead."""
    try:
        return _RESULT.decode(worker.pipe.recv_bytes())
    except (EOFError, OSError):
        return None


def _lost(batch: Batch, task_id: str, *, late: bool) -> TaskResult:
    reason = (
        f"judging took more than the {batch.seconds:g} s that one run may take"
        if late
        else "the worker died over this run, most likely for want of memory"
    )
    verdict = Verdict(outcome=Outcome.UNKNOWN, reasons=(reason,))
    return result_of(batch.tasks[task_id], verdict, batch.steps.get(task_id), batch.seconds)
