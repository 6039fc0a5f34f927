"""Scores and costs of runs, as ``trajudge score`` gives them.

They are computed in threads next to the pages that show them (of a large run in a process of its
own, which gives the memory back), and kept as long as the run's files stay.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar, TypeVarTuple

from trajudge.app.figures import CurvePoint, curve_points, overall_scores
from trajudge.app.workspace import FileIdentity, OpenedRun, identity_of
from trajudge.eval.process import question_of
from trajudge.eval.reporting.sentences import RunCost, known_dollars
from trajudge.eval.score import read_sources, score_source
from trajudge.eval.scoring.records import LabelName, ScoreReport
from trajudge.eval.scoring.usage import judge_usage, unattributed_cost
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.sources import observed_verdicts, read_last_judgments
from trajudge.eval.store.run_folder import CALLS, COST, JUDGMENTS
from trajudge.eval.store.table import PAYMENTS, JudgmentTable, last_of_each
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular
from trajudge.util.machine import collection_paused

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")


def in_process(function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Call a function of a module in a process that ends with this one, and return what it returns.
    Raises UserError as it does, and where the process dies."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, *arguments), daemon=True)
    process.start()
    sender.close()
    try:
        outcome = receiver.recv()
    except EOFError as error:
        raise UserError("The run could not be read; the terminal shows more") from error
    finally:
        process.join()
        receiver.close()
    if isinstance(outcome, UserError):
        raise outcome
    returned: T = outcome
    return returned


def _send(sender: Connection, function: Callable[..., object], *arguments: object) -> None:
    # Ctrl-C reaches every process of a terminal; this one ends with the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sender.send(function(*arguments))
    except UserError as error:
        sender.send(error)


LARGE = 20_000_000
"""Bytes of judgments from which on a process of its own is worth its start."""


class ScoredRun(NamedTuple):
    """A run's scores on ``question``; ``has_labels``: experts answered it. ``curve`` places its
    judges by recall and precision, and by how their scores come true."""

    scores: ScoreReport
    question: LabelName
    has_labels: bool
    curve: list[CurvePoint]


def score_run(folder: Path, annotations: str | None) -> ScoredRun:
    """Score a run against its own labels, or those of a specification. Raises UserError."""
    if is_large(folder):
        return in_process(_scored, folder, annotations)
    return _scored(folder, annotations)


def is_large(folder: Path) -> bool:
    """Tell whether a run is better read in a process of its own."""
    journal = folder / JUDGMENTS
    return journal.is_file() and journal.stat().st_size >= LARGE


def _scored(folder: Path, annotations: str | None) -> ScoredRun:
    config = ScoreConfig(runs=(folder,), annotations=annotations, baselines="off", by="agent")
    with collection_paused():
        source = read_sources(config)
        question = question_of(source.judgments)
        labelled = any(getattr(label, question) is not None for label in source.labels.values())
        scores = score_source(source, config)
        overall = [(name, score) for name, _, score in overall_scores(scores, question)]
        observed = observed_verdicts(source, scores.missing, question) if labelled else {}
        return ScoredRun(scores, question, labelled, curve_points(overall, observed))


# A run that is being judged changes all the time: computing takes at most this share of it.
SHARE = 0.1

PATIENCE = 0.5
"""Seconds that a page waits for scores, and for costs, before it shows what is there."""


class KeptState(NamedTuple, Generic[T]):
    """The last ``value``, None while there is none yet; ``is_current``: the files are still those
    that it was computed of."""

    value: T | None
    is_current: bool


@dataclass
class _Kept(Generic[T]):
    """What was computed of a run last, and whether it is at work."""

    version: tuple[FileIdentity, ...] = ()
    value: T | None = None
    problem: UserError | None = None
    at_work: threading.Thread | None = None
    ended: float = 0.0
    took: float = 0.0


class Keeper(Generic[T]):
    """Computes something of runs in threads of its own, of each run once at a time, and keeps it as
    long as what ``version`` tells of the run stays. To be used from any thread."""

    def __init__(
        self,
        compute: Callable[..., T],
        version: Callable[[OpenedRun], tuple[FileIdentity, ...]],
    ) -> None:
        self._compute, self._version = compute, version
        self._lock = threading.Lock()
        self._runs: dict[str, _Kept[T]] = {}

    def of(self, run: OpenedRun, *more: object, wait: float | None = None) -> KeptState[T]:
        """Compute it of a run (and ``more``), and wait at most ``wait`` seconds for it (None: until
        it is done). Raises UserError."""
        version = self._version(run)
        with self._lock:
            kept = self._runs.setdefault(run.name, _Kept())
            pause = 0.0 if wait is None else kept.took / SHARE - kept.took
            is_due = time.monotonic() >= kept.ended + pause
            if kept.version != version and not kept.at_work and is_due:
                work = threading.Thread(target=self._work, args=(kept, run, *more), daemon=True)
                kept.at_work = work
                work.start()
            worker = kept.at_work
        if worker is not None:
            worker.join(wait)
        with self._lock:
            if kept.problem is not None:
                raise kept.problem
            return KeptState(kept.value, kept.version == version)

    def _work(self, kept: _Kept[T], run: OpenedRun, *more: object) -> None:
        begun, version = time.monotonic(), self._version(run)
        value, problem = kept.value, None
        try:
            value = self._compute(run, *more)
        except UserError as error:
            problem = error
        except Exception:
            problem = UserError(
                "The run cannot be scored: a defect, of which the terminal shows more"
            )
            raise
        finally:
            with self._lock:
                kept.version, kept.value, kept.problem = version, value, problem
                kept.ended, kept.at_work = time.monotonic(), None
                kept.took = kept.ended - begun


def run_scores() -> Keeper[ScoredRun]:
    """Keep the scores of runs, against their own labels or those of a specification."""
    return Keeper(
        lambda run, annotations: score_run(run.folder, annotations), lambda run: run.version
    )


_FILES = (JUDGMENTS, CALLS, PAYMENTS)


class ListedCost(NamedTuple):
    """Dollars for the calls of a run's judgments, None where they are not known, and ``more``
    paid besides. ``is_pending``: they are being counted for the first time."""

    dollars: float | None
    more: float = 0.0
    is_pending: bool = False


class RunCosts:
    """Counts what runs paid where they did not write it down, one run at a time."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._kept = Keeper(self._count, lambda run: _version(run.folder))

    def of(self, runs: Sequence[OpenedRun], wait: float | None = None) -> Mapping[str, ListedCost]:
        """Return the cost of each run by its name. For those that are to be counted, wait at most
        ``wait`` seconds in all (None: until it is done)."""
        end, costs = time.monotonic() + (wait or 0.0), dict[str, ListedCost]()
        for run in runs:
            cost = _written(run.folder)
            if cost is None:
                left = None if wait is None else max(0.0, end - time.monotonic())
                cost = self._kept.of(run, wait=left).value
            costs[run.name] = cost or ListedCost(None, is_pending=True)
        return costs

    def _count(self, run: OpenedRun) -> ListedCost:
        with self._turn:
            try:
                held = run.held()
                if held is not None:  # the pages read them already
                    return _cost(run.folder, held.at(last_of_each(held)))
                large = is_large(run.folder)
                return in_process(_counted, run.folder) if large else _counted(run.folder)
            except UserError:  # which the run's page tells
                return ListedCost(None)


def _version(folder: Path) -> tuple[FileIdentity, ...]:
    return tuple(identity_of(folder / name) for name in _FILES)


def _written(folder: Path) -> ListedCost | None:
    """Read what the run wrote at its end; None where it wrote nothing, or has paid since."""
    path = folder / COST
    with suppress(OSError, ValueError):
        cost = RunCost.model_validate_json(read_regular(path))
        written = path.stat().st_mtime_ns
        if all(changed <= written for _, changed, _, _ in _version(folder)):
            return ListedCost(cost.dollars, cost.more)
    return None


def _counted(folder: Path) -> ListedCost:
    """Count it from the run's files. Raises UserError."""
    return _cost(folder, read_last_judgments(folder)[0])


def _cost(folder: Path, judgments: JudgmentTable) -> ListedCost:
    spent = [judge_usage(judge, judgments) for judge in judgments.judges]
    unattributed = unattributed_cost(folder / PAYMENTS, judgments.calls)
    return ListedCost(known_dollars(spent, unattributed), unattributed.dollars)
