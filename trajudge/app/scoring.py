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
from typing import NamedTuple, TypeVar, TypeVarTuple

from trajudge.app.figures import CurvePoint, curve_points, overall_scores
from trajudge.app.workspace import FileIdentity, OpenedRun, identity_of
from trajudge.eval.process import question_of
from trajudge.eval.reporting.sentences import RunCost, known_dollars
from trajudge.eval.score import read_sources, score_source
from trajudge.eval.scoring.compute import by_judge
from trajudge.eval.scoring.records import LabelName, ScoreReport
from trajudge.eval.scoring.usage import judge_usage, unattributed_cost
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.sources import observed_verdicts, read_last_judgments
from trajudge.eval.store.run_folder import CALLS, COST, JUDGMENTS
from trajudge.eval.store.table import PAYMENTS
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


# A run that is being judged changes all the time: scoring it takes at most this share of the time.
SHARE = 0.1

PATIENCE = 1.0
"""Seconds that a page waits for scores, and for costs, before it shows what is there."""


class ScoringState(NamedTuple):
    """The last scores, None while there are none yet; ``is_current``: the files are still those
    that were scored."""

    scored: ScoredRun | None
    is_current: bool


@dataclass
class _Scoring:
    """The scoring of one run: what it gave last, and whether it is at work."""

    version: tuple[FileIdentity, ...] = ()
    scored: ScoredRun | None = None
    problem: UserError | None = None
    at_work: threading.Thread | None = None
    ended: float = 0.0
    took: float = 0.0


class RunScores:
    """Scores runs, each once at a time, in threads of its own. To be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, _Scoring] = {}

    def of(
        self, run: OpenedRun, annotations: str | None = None, wait: float | None = None
    ) -> ScoringState:
        """Score a run against its own labels, or those of a specification, and wait at most
        ``wait`` seconds for it (None: until it is done). Raises UserError."""
        version = run.version
        with self._lock:
            scoring = self._runs.setdefault(run.name, _Scoring())
            stale = scoring.version != version
            pause = 0.0 if wait is None else scoring.took / SHARE - scoring.took
            if stale and not scoring.at_work and time.monotonic() >= scoring.ended + pause:
                scoring.at_work = threading.Thread(
                    target=self._score, args=(scoring, run, annotations), daemon=True
                )
                scoring.at_work.start()
            worker = scoring.at_work
        if worker is not None:
            worker.join(wait)
        with self._lock:
            if scoring.problem is not None:
                raise scoring.problem
            return ScoringState(scoring.scored, scoring.version == version)

    def _score(self, scoring: _Scoring, run: OpenedRun, annotations: str | None) -> None:
        begun, version = time.monotonic(), run.version
        scored, problem = scoring.scored, None
        try:
            scored = score_run(run.folder, annotations)
        except UserError as error:
            problem = error
        except Exception:
            problem = UserError(
                "The run cannot be scored: a defect, of which the terminal shows more"
            )
            raise
        finally:
            with self._lock:
                scoring.version, scoring.scored, scoring.problem = version, scored, problem
                scoring.ended, scoring.at_work = time.monotonic(), None
                scoring.took = scoring.ended - begun


_FILES = (JUDGMENTS, CALLS, PAYMENTS)


class ListedCost(NamedTuple):
    """Dollars for the calls of a run's judgments, None where they are not known, and ``more``
    beside them. ``is_pending``: they are being counted for the first time."""

    dollars: float | None
    more: float = 0.0
    is_pending: bool = False


class _Counted(NamedTuple):
    """What a run paid when its files were of that ``version``, and when it may be counted anew."""

    version: tuple[FileIdentity, ...]
    cost: ListedCost
    next: float


class RunCosts:
    """Counts what runs paid, one run at a time in a thread of its own, and keeps it as long as
    their files stay. To be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, _Counted] = {}
        self._at_work: threading.Thread | None = None

    def of(self, runs: Sequence[OpenedRun], wait: float | None = None) -> Mapping[str, ListedCost]:
        """Tell the cost of each run by its name. For those that are to be counted, wait at most
        ``wait`` seconds in all (None: until it is done)."""
        told = {run.name: cost for run in runs if (cost := _written(run.folder))}
        others = [run for run in runs if run.name not in told]
        begun = time.monotonic()
        end = None if wait is None else begun + wait
        while (worker := self._counting(others, begun)) is not None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            worker.join(left)
        with self._lock:
            for run in others:
                kept = self._kept.get(run.name)
                told[run.name] = kept.cost if kept else ListedCost(None, is_pending=True)
        return told

    def _counting(self, runs: Sequence[OpenedRun], now: float) -> threading.Thread | None:
        """Return the thread that counts, begun where something was due at ``now``; None where
        nothing was."""
        with self._lock:
            due = [run for run in runs if self._is_due(run, now)]
            if due and self._at_work is None:
                self._at_work = threading.Thread(target=self._count, args=(due,), daemon=True)
                self._at_work.start()
            return self._at_work if due else None

    def _is_due(self, run: OpenedRun, now: float) -> bool:
        kept = self._kept.get(run.name)
        if kept is None:
            return True
        return kept.version != _version(run.folder) and now >= kept.next

    def _count(self, runs: Sequence[OpenedRun]) -> None:
        try:
            for run in runs:
                self._count_one(run)
        finally:
            with self._lock:
                self._at_work = None

    def _count_one(self, run: OpenedRun) -> None:
        begun, version = time.monotonic(), _version(run.folder)
        cost = ListedCost(None)
        try:
            with suppress(UserError):  # which the run's page tells
                large = is_large(run.folder)
                cost = in_process(_counted, run.folder) if large else _counted(run.folder)
        finally:
            ended = time.monotonic()
            pause = (ended - begun) * (1 / SHARE - 1)
            with self._lock:
                self._kept[run.name] = _Counted(version, cost, ended + pause)


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
    judgments, _ = read_last_judgments(folder)
    spent = [judge_usage(name, judgments.at(mine)) for name, mine in by_judge(judgments)]
    unattributed = unattributed_cost(folder / PAYMENTS, judgments.calls)
    return ListedCost(known_dollars(spent, unattributed), unattributed.dollars)
