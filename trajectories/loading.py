"""What loaders take and give: which trajectories are wanted, and those that were read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable

Want = Callable[[TrajectoryKey], bool]
Loaded = Iterator[Trajectory | Unreadable]


def accept_all(key: TrajectoryKey) -> bool:
    """Accept every trajectory."""
    return True
