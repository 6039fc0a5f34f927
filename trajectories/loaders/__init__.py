"""Readers of other people's trajectory files, one format a module."""

from __future__ import annotations

from trajectories.model import TrajectoryKey


def accept_all(key: TrajectoryKey) -> bool:
    """The filter that lets every trajectory through."""
    return True
