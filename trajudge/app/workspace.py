"""What the application shows: the runs, data and labels that the command line named."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.requests import Request

from trajudge.app.web import PageError
from trajudge.eval.store.filters import (
    HEAD,
    Described,
    JudgmentView,
    combine_views,
    read_descriptions,
    read_view,
)
from trajudge.eval.store.inputs import open_on_this_machine, recorded_data
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    LABELS,
    REWARDS,
    check_run_folder,
    read_manifest,
)
from trajudge.eval.store.table import JudgmentTable, places_among
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

# Choices of runs that are compared at a time, each in memory.
_MOST_COMBINED = 4

FileIdentity = tuple[int, int, int, int]

"""Size, nanoseconds of the change and of the status change, number; all 0: there is no file."""

SEARCHED = 500_000_000
"""Bytes of judgments up to which the whole reasoning is searched."""

READING = "Goals and steps of the trajectories are still being read."

# A run that is being judged changes all the time: where reading it takes so many seconds or more,
# it takes at most this share of the time.
_LONG, _SHARE = 0.5, 0.1

_SMALL = 10_000_000  # bytes of judgments
MOMENT = 0.3
"""Seconds that a page waits for goals."""

_FILES = (JUDGMENTS, CALLS, LABELS, REWARDS)


def identity_of(path: Path) -> FileIdentity:
    """Return what a file is known by."""
    try:
        status = path.stat()
    except OSError:  # whoever reads it says why
        return 0, 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


class OpenedRun:
    """A run's folder with its judgments in memory, read again where the files have changed;
    ``name`` stands for it in addresses. To be used from any thread."""

    def __init__(
        self,
        name: str,
        folder: Path,
        data: Sequence[str] = (),
        annotations: str | None = None,
    ) -> None:
        self.name, self.folder = name, folder
        self._data, self._annotations = tuple(data), annotations
        self._lock = threading.Lock()
        self._identity: tuple[FileIdentity, ...] = ()
        self._view: JudgmentView | None = None
        self._next = 0.0
        self._descriptions: dict[TrajectoryKey, Described] = {}
        self._described: JudgmentView | None = None
        self._note: str | None = None

    @property
    def manifest(self) -> dict[str, Any]:
        """The settings that it was made with, as they stand in its folder now."""
        return read_manifest(self.folder)

    @property
    def data(self) -> str:
        """What the run names as its data, "" for nothing."""
        return recorded_data(self.folder)

    @property
    def version(self) -> tuple[FileIdentity, ...]:
        """What the files are now: what was computed of them holds as long as they stay."""
        return tuple(identity_of(self.folder / name) for name in _FILES)

    def view(self) -> JudgmentView:
        """Return the run's judgments. Raises UserError for files that cannot be read."""
        with self._lock:
            identity, begun, view = self.version, time.monotonic(), self._view
            if view is None or (identity != self._identity and begun >= self._next):
                longest = {"longest": HEAD} if identity[0][0] > SEARCHED else {}
                view = self._view = read_view(self.folder, self._annotations, **longest)
                self._identity, self._described = identity, None
                ended = time.monotonic()
                took = ended - begun
                self._next = ended + (took * (1 / _SHARE - 1) if took >= _LONG else 0.0)
            if self._described is None:
                self._described = view.described(self._descriptions)
            return self._described

    def held(self) -> JudgmentTable | None:
        """Return the run's judgments if they are in memory as its files are now."""
        with self._lock:
            if self._view is None or self.version != self._identity:
                return None
            return self._view.judgments

    def goal(self, key: TrajectoryKey) -> str:
        """Return the goal of a trajectory, "" while it is not known."""
        described = self._descriptions.get(key)
        return described.goal if described else ""

    def notes(self, wait: float = MOMENT) -> list[str]:
        """Say what is not known of the trajectories yet, and have it read: the first call begins,
        and waits so many seconds for those of a small run, which are read quickly."""
        with self._lock:
            begins = self._note is None
            if begins:
                self._note = READING
        if begins:
            worker = threading.Thread(target=self._describe, daemon=True)
            worker.start()
            if identity_of(self.folder / JUDGMENTS)[0] <= _SMALL:
                worker.join(wait)
        with self._lock:
            notes = [self._note] if self._note else []
        if identity_of(self.folder / JUDGMENTS)[0] > SEARCHED:
            notes.append(f"Free text is looked for in the first {HEAD} characters of reasoning.")
        return notes

    def _describe(self) -> None:
        note = "Goals and steps could not be read because of a defect."
        try:
            keys = set(self.view().keys)
            if identity_of(self.folder / JUDGMENTS)[0] > _SMALL:
                time.sleep(MOMENT)  # the page that asked is made first
            specs = self._data or [open_on_this_machine(self.data)]
            found = read_descriptions(specs, keys)
            absent = len(keys - found.keys())
            note = f"{absent:,} trajectories are not in the data: filters on steps miss them."
            note = note if absent else ""
            with self._lock:
                self._descriptions, self._described = found, None
        except UserError as error:
            note = f"Filters know neither goals nor steps: {error}"
        finally:
            with self._lock:
                self._note = note


@dataclass(frozen=True, eq=False)
class CombinedRuns:
    """The judgments of several ``runs``, by their names."""

    runs: tuple[str, ...]
    view: JudgmentView
    starts: tuple[int, ...]

    def place(self, row: int) -> tuple[str, int]:
        """Return the run of a judgment, and its place there."""
        number = int(self.view.judgments.source[row])
        return self.runs[number], row - self.starts[number]


@dataclass(frozen=True)
class Workspace:
    """``runs`` by name, in the order that they were named; ``data`` (empty: what the runs name) and
    ``annotations`` (None: those of the runs) are specifications. New queues are written into the
    folder ``queues``."""

    runs: Mapping[str, OpenedRun] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    annotations: str | None = None
    queues: Path = Path("queues")
    _combined: dict[tuple[str, ...], tuple[list[JudgmentView], CombinedRuns]] = field(
        default_factory=dict, repr=False
    )
    _ranked: dict[str, tuple[JudgmentView, CombinedRuns, JudgmentView]] = field(
        default_factory=dict, repr=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def goal(self, key: TrajectoryKey) -> str:
        """Return the goal of a trajectory as one of the runs' data tell it, "" while it is not
        known."""
        return next(filter(None, (run.goal(key) for run in self.runs.values())), "")

    def view(self, run: OpenedRun, *, agreeing: bool) -> JudgmentView:
        """Return a run's judgments, where it matters who is ``agreeing`` with the votes of the
        judges of all runs that can be read. Raises UserError as the run's view."""
        own, readable = run.view(), list[str]()
        if not agreeing or len(self.runs) == 1:
            return own
        for name, other in self.runs.items():
            with suppress(UserError):
                other.view()
                readable.append(name)
        combined = self.combined(readable)
        kept = self._ranked.get(run.name)
        if kept is None or kept[0] is not own or kept[1] is not combined:
            places = places_among(own.keys, combined.view.keys)
            ranked = replace(own, peers=combined.view.evaluators[:, places])
            kept = self._ranked[run.name] = own, combined, ranked
        return kept[2]

    def combined(self, names: Sequence[str] = ()) -> CombinedRuns:
        """Return the judgments of the runs of these names, of all if there are none. Raises
        PageError 404 for a run that is not there, UserError for one that cannot be read."""
        chosen = tuple(dict.fromkeys(names)) or tuple(self.runs)
        runs = [self.run(name) for name in chosen]
        views = [run.view() for run in runs]
        with self._lock:
            known = self._combined.pop(chosen, None)
            if known is None or any(a is not b for a, b in zip(known[0], views, strict=True)):
                whole = combine_views(
                    dict(zip(chosen, views, strict=True)), [run.folder for run in runs]
                )
                lengths = [len(view.judgments) for view in views]
                starts = tuple(sum(lengths[:number]) for number in range(len(lengths)))
                known = views, CombinedRuns(chosen, whole, starts)
            self._combined[chosen] = known
            while len(self._combined) > _MOST_COMBINED:
                self._combined.pop(next(iter(self._combined)))
            return known[1]

    def run(self, name: str) -> OpenedRun:
        """Return a run by its name in addresses. Raises PageError 404."""
        if name not in self.runs:
            raise PageError(404, "There is no such run here: go back to the list of runs.")
        return self.runs[name]


def open_workspace(
    folders: Sequence[Path],
    data: Sequence[str] = (),
    annotations: str | None = None,
    queues: Path = Path("queues"),
) -> Workspace:
    """Open runs' folders under names of their own. Raises UserError for one that is none."""
    runs: dict[str, OpenedRun] = {}
    for folder in dict.fromkeys(each.resolve() for each in folders):
        check_run_folder(folder)
        if not (folder / JUDGMENTS).is_file():
            raise UserError(
                f"{folder}: has no {JUDGMENTS}: it was copied in part, or its run has not begun to "
                "judge: copy it whole, or leave it out"
            )
        name = _name(folder, runs)
        runs[name] = OpenedRun(name, folder, data, annotations)
    return Workspace(runs, tuple(data), annotations, queues)


def _name(folder: Path, others: Mapping[str, OpenedRun]) -> str:
    """Name a run after its folder, as letters that need no quoting in an address."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in folder.name)
    plain = plain.strip("-") or "run"
    name, number = plain, 2
    while name in others:
        name, number = f"{plain}-{number}", number + 1
    return name


def workspace_of(request: Request) -> Workspace:
    """Return what the application was started with."""
    workspace: Workspace = request.app.state.workspace
    return workspace
