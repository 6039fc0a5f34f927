"""What loaders take and give: which trajectories are wanted, and those that were read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.util.errors import ImageUnreadable
from trajudge.util.terminal import count_of, one_line

Want = Callable[[TrajectoryKey], bool]
Loaded = Iterator[Trajectory | Unreadable]


def accept_all(key: TrajectoryKey) -> bool:
    """Accept every trajectory."""
    return True


class Readable:
    """The trajectories of a source, to be written one by one; what cannot be read is named on
    stderr and counted (``failed``), and so are pictures that are ``lost`` in writing."""

    def __init__(self, loaded: Loaded) -> None:
        self.converted = self.failed = self.lost = 0
        self._first_lost = ""
        self._key: TrajectoryKey | None = None
        self._loaded = loaded

    def __iter__(self) -> Iterator[Trajectory]:
        for trajectory in self._loaded:
            if isinstance(trajectory, Trajectory):
                self.converted += 1
                self._key = trajectory.key
                yield trajectory
            else:
                self.failed += 1
                line = one_line(f"{trajectory.source}: {trajectory.reason}")
                sys.stderr.write(f"not read: {line}\n")

    def lose(self, error: ImageUnreadable) -> None:
        """Count a picture of the trajectory that is being written."""
        self._first_lost = self._first_lost or one_line(f"{self._key}: {error}")
        self.lost += 1

    def lost_pictures(self, folder: Path) -> str:
        """Say how many pictures are not in ``folder``, and name the first."""
        return (
            f"{count_of(self.lost, 'picture')} could not be read (the first: {self._first_lost}): "
            f"not in {folder}, where the warnings of each trajectory name its own"
        )
