"""The record of a run.

``model`` has the nouns (Trajectory, Step, Observation, TrajectoryKey), ``loaders/`` one module
a file format, ``store`` our own format, ``represent`` what a judge is shown of a trajectory,
``images`` the only place where pixels are read, ``sample/`` the bundled trajectories.
"""

from trajectories.errors import ImageUnreadable, MissingExtra, UserError
from trajectories.model import (
    ImageRef,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
    Unreadable,
)

__all__ = [
    "ImageRef",
    "ImageUnreadable",
    "MissingExtra",
    "Observation",
    "Step",
    "Trajectory",
    "TrajectoryKey",
    "Unreadable",
    "UserError",
]
