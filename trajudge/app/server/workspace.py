"""What the application shows: the runs, data and labels that the command line named."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request

from trajudge.app.server.problems import PageError
from trajudge.eval.store.queries import CombinedIndex
from trajudge.eval.store.run_folder import JUDGMENTS, MANIFEST, read_manifest
from trajudge.eval.store.run_index import RunIndex
from trajudge.judges.model import Judgment
from trajudge.util.errors import UserError

# Choices of runs that are compared at a time; each takes a temporary file.
_MOST_COMBINED = 4


@dataclass(frozen=True)
class OpenedRun:
    """A run's folder with its index; ``name`` stands for it in addresses."""

    name: str
    folder: Path
    index: RunIndex

    @property
    def manifest(self) -> dict[str, Any]:
        """The settings that it was made with, as they stand in its folder now."""
        return read_manifest(self.folder)

    def judgment(self, place: int) -> Judgment:
        """Decode the judgment in a line of the run's file, counted from 0. Raises UserError."""
        return self.index.judgment(place)


@dataclass(frozen=True)
class Workspace:
    """``runs`` by name, in the order that they were named; ``data`` (empty: what the runs name) and
    ``annotations`` (None: those of the runs) are specifications. New queues are written into the
    folder ``queues``. ``search``: the words of every judgment are read, however many there are."""

    runs: Mapping[str, OpenedRun] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    annotations: str | None = None
    queues: Path = Path("queues")
    search: bool = False
    _combined: dict[tuple[str, ...], CombinedIndex] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def combined(self, names: Sequence[str] = ()) -> CombinedIndex:
        """Return the index over the runs of these names, all of them if there are none. Raises
        PageError 404 for a run that is not there."""
        chosen = tuple(dict.fromkeys(names)) or tuple(self.runs)
        indexes = {name: self.run(name).index for name in chosen}
        with self._lock:
            if chosen not in self._combined:
                if len(self._combined) >= _MOST_COMBINED:
                    self._combined.pop(next(iter(self._combined)))
                self._combined[chosen] = CombinedIndex(indexes)
            return self._combined[chosen]

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
    *,
    search: bool = False,
) -> Workspace:
    """Open runs' folders under names of their own. Raises UserError for one that is none."""
    runs: dict[str, OpenedRun] = {}
    for folder in dict.fromkeys(each.resolve() for each in folders):
        if not (folder / MANIFEST).is_file():
            raise UserError(f"{folder}: is not the folder of a run, it has no {MANIFEST}")
        if not (folder / JUDGMENTS).is_file():
            raise UserError(
                f"{folder}: has no {JUDGMENTS}: it was copied in part, or its run has not begun to "
                "judge: copy it whole, or leave it out"
            )
        name = _name(folder, runs)
        runs[name] = OpenedRun(name, folder, RunIndex(folder, annotations))
    return Workspace(runs, tuple(data), annotations, queues, search)


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
