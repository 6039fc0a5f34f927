"""What runs paid, as ``trajudge score`` tells it: read where it was written, counted where not."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from trajudge.app.runs.scored import SHARE
from trajudge.app.runs.scoring import is_large
from trajudge.app.server.processes import in_process
from trajudge.app.server.workspace import FileIdentity, OpenedRun, identity_of
from trajudge.eval.reporting.sentences import RunCost, known_dollars
from trajudge.eval.scoring.usage import judge_usage, unattributed_cost
from trajudge.eval.sources import read_last_judgments
from trajudge.eval.store.run_folder import CALLS, COST, JUDGMENTS
from trajudge.eval.store.table import PAYMENTS
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular

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
    spent = [judge_usage(judge, judgments) for judge in judgments.judges]
    unattributed = unattributed_cost(folder / PAYMENTS, judgments.calls)
    return ListedCost(known_dollars(spent, unattributed), unattributed.dollars)
