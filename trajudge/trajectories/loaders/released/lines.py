"""Files of one run a line, in which several lines of one task are attempts at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from trajudge.trajectories.loaders.common.detection import head
from trajudge.trajectories.loaders.files import readable, reason
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.jsonl import read_lines
from trajudge.trajectories.util.safe_files import DataFolder


class RunFile(NamedTuple):
    """A kind's file of one run a line: its name in a folder, and what its first line holds."""

    kind: str
    name: str
    marks: tuple[bytes, ...]
    lines: str

    def of(self, path: Path) -> Path:
        """Return the file that ``path`` names: itself, or the one of this name in the folder."""
        return path / self.name if path.is_dir() else path

    def detected(self, path: Path) -> bool:
        """Tell whether ``path`` names such a file."""
        first = head(self.of(path)).split(b"\n", 1)[0]
        return all(mark in first for mark in self.marks)

    def existing(self, path: Path) -> Path:
        """Return the file that ``path`` names. Raises UserError if there is none."""
        file = self.of(path)
        if file.is_file():
            return file
        raise UserError(
            f"{path}: holds no {self.name}: --data {self.kind}:PATH needs a file of {self.lines}"
        )


class PlacedRun(NamedTuple):
    """A line of the file: where it stands, its run's key, and its content."""

    place: str
    key: TrajectoryKey
    data: bytes


def placed_runs(
    path: Path, file: Path, identify: Callable[[bytes], TrajectoryKey]
) -> Iterator[PlacedRun | Unreadable]:
    """Yield every line of ``file`` with its run's key, as ``identify`` reads it but for the
    attempt. A folder at ``path`` bounds where links may lead.

    ``identify`` raises ValueError or RecursionError for a line that it cannot read.
    """
    attempts: Counter[str] = Counter()
    for line in read_lines(file, folder=DataFolder(path) if path.is_dir() else None):
        place = f"{readable(str(file))}, line {line.number}"
        try:
            if line.problem:
                raise ValueError(line.problem)
            key = identify(line.data)
        except (ValueError, RecursionError) as error:
            yield Unreadable(place, reason(error))
            continue
        attempt = attempts[key.task_id]
        attempts[key.task_id] += 1
        yield PlacedRun(place, key.model_copy(update={"attempt": attempt}), line.data)
