"""Trajectories of the data that the application shows, opened one at a time.

A file of trajudge's own format that is not compressed is read at the place of the trajectory, found
by one pass over the file. Of other data the loader passes over what is not asked for, by key. The
last few that were opened stay in memory, so that another step of one is another look at it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from trajudge.app.workspace import FileIdentity, identity_of
from trajudge.eval.store.filters import read_descriptions
from trajudge.eval.store.inputs import open_recorded, open_spec
from trajudge.trajectories import store
from trajudge.trajectories.goals import split_goals
from trajudge.trajectories.loaders import open_source, parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.store import StoredPosition, read_at, stored_positions
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder
from trajudge.util.terminal import one_line

MOST_OPEN = 8
"""Trajectories that stay in memory."""


class OpenedTrajectory(NamedTuple):
    """``folder`` is where its data lie, and ``root`` what may be read of it; both None for data
    that are no files."""

    trajectory: Trajectory
    folder: Path | None
    root: DataFolder | None


class TrajectoryAbsent(LookupError):
    """The trajectory is in no data, or cannot be read; the message says which, in a sentence."""


class _Positions(NamedTuple):
    identity: FileIdentity
    places: dict[TrajectoryKey, StoredPosition]


class TrajectoryLibrary:
    """Opens trajectories of ``named`` data (the user named them) or of the ``recorded`` ones (runs
    name them), of which no loader of a stranger's is run and nothing is fetched."""

    def __init__(self, named: Sequence[str], recorded: Sequence[str]) -> None:
        self._named, self._recorded = named, recorded
        self._opened: OrderedDict[tuple[str, TrajectoryKey], OpenedTrajectory] = OrderedDict()
        self._positions: dict[Path, _Positions] = {}
        self._goals: dict[TrajectoryKey, str] = {}
        self._lock = Lock()

    def open(self, key: TrajectoryKey, preferred: str = "") -> OpenedTrajectory:
        """Open a trajectory. Where runs name several data, those of the ``preferred`` specification
        are looked at first: two may hold the same key. Raises TrajectoryAbsent; UserError for named
        data that do not open."""
        place = (preferred if preferred in self._recorded else "", key)
        with self._lock:
            if place in self._opened:
                self._opened.move_to_end(place)
                return self._opened[place]
        opened = self._read(key, place[0])
        with self._lock:
            self._opened[place] = opened
            while len(self._opened) > MOST_OPEN:
                self._opened.popitem(last=False)
        return opened

    def goals(self, keys: Iterable[TrajectoryKey]) -> Mapping[TrajectoryKey, str]:
        """Return the goals of trajectories, "" of those that are not in the data: those that are
        asked for the first time are read in one pass."""
        wanted = set(keys) - self._goals.keys()
        found: dict[TrajectoryKey, str] = dict.fromkeys(wanted, "")
        for spec in (self._named or self._recorded) if wanted else ():
            with suppress(UserError):
                described = read_descriptions([self._openable(spec)], wanted)
                found |= {key: each.goal for key, each in described.items()}
        self._goals |= found
        return self._goals

    def _read(self, key: TrajectoryKey, preferred: str) -> OpenedTrajectory:
        problems: list[str] = []
        first = [preferred] if preferred else []
        for spec in self._named or dict.fromkeys([*first, *self._recorded]):
            try:
                kind, path = parse_source(self._openable(spec))
                if path is None:
                    raise UserError(f"{spec}: name the copy on this machine with --data KIND:PATH")
                read = self._find(kind, path, spec, key)
            except UserError as error:
                if self._named:
                    raise
                problems.append(one_line(str(error)))
                continue
            if isinstance(read, Trajectory):
                folder = path if path.is_dir() else path.parent
                # The screenshots of AgentRewardBench lie beside its folder "cleaned".
                root = folder.absolute().parent if folder.name == "cleaned" else folder
                return OpenedTrajectory(read, folder, DataFolder(root))
            if read is not None:
                problems.append(f"{read.source}: {read.reason}")
        why = f": {'; '.join(problems)}" if problems else ""
        raise TrajectoryAbsent(
            f"The trajectory {key} is not in the data{why}; name the data with --data KIND:PATH."
        )

    def _openable(self, spec: str) -> str:
        return open_spec(spec) if self._named else open_recorded(spec)

    def _find(
        self, kind: str, path: Path, spec: str, key: TrajectoryKey
    ) -> Trajectory | Unreadable | None:
        file = store.find_file(path) if kind == "trajudge" else None
        if file is not None and file.suffix == ".jsonl" and split_goals(spec)[1] is None:
            known = DataFolder(path).has_file(file) or file == path
            position = self._places(file).get(key) if known else None
            if position is not None:
                return read_at(file, position)
        for one in open_source(self._openable(spec), key.__eq__):
            if one.key == key:
                return one
        return None

    def _places(self, file: Path) -> dict[TrajectoryKey, StoredPosition]:
        """Return where the trajectories stand; found anew when the file has changed."""
        identity = identity_of(file)
        with self._lock:
            known = self._positions.get(file)
        if known is None or known.identity != identity:
            known = _Positions(identity, stored_positions(file))
            with self._lock:
                self._positions[file] = known
        return known.places
