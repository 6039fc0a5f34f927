"""The record of a run.

``model`` has the nouns (Trajectory, Step, Observation, TrajectoryKey), ``loaders/`` one module
a file format, ``store`` our own format, ``represent`` what a judge is shown of a trajectory,
``images`` the only place where pixels are read, ``sample/`` the bundled trajectories.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge.trajectories.model import (
        ImageRef,
        Observation,
        Step,
        Trajectory,
        TrajectoryKey,
        Unreadable,
    )
    from trajudge.util.errors import ImageUnreadable, MissingExtra, UserError

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

_ERRORS = ("ImageUnreadable", "MissingExtra", "UserError")


def __getattr__(name: str) -> object:
    """Return the public names, imported when first used: ``--help`` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'trajectories' has no attribute {name!r}")
    module = "trajudge.util.errors" if name in _ERRORS else "trajudge.trajectories.model"
    return getattr(import_module(module), name)
