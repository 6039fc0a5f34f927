"""Loaders of the users': from a package (entry point group ``trajudge.loaders``) or a single file.

Either gives a module with ``load(path, want)``, which yields a ``Trajectory`` at a time, and
``Unreadable`` for a bad one among good ones; ``want(key)`` tells whether one is needed, so that
files of others need not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from trajudge.trajectories.loading import Loaded, Want
from trajudge.trajectories.model import Trajectory, Unreadable
from trajudge.trajectories.plugins import Door, mistakes_said, refuse_async
from trajudge.util.errors import UserError

DOOR = Door(group="trajudge.loaders", option="--data")


def load_with(name: str, path: Path, want: Want) -> Loaded:
    """Read the wanted trajectories with a user's loader.

    Raises UserError at once if it cannot be loaded, and for what it yields that is no trajectory
    or raises itself.
    """
    module = DOOR.module(name)
    load = getattr(module, "load", None)
    if not callable(load):
        raise UserError(
            f"--data {name}: defines no loader: write  def load(path, want)  that yields "
            "trajectories"
        )
    refuse_async(f"--data {name}", load, "def load(path, want)")
    return _checked(name, _guarded(name, load, path, want), want)


def _guarded(name: str, load: Callable[..., object], path: Path, want: Want) -> Iterator[object]:
    mend = "correct it, or yield an Unreadable for what cannot be read"
    with mistakes_said(f"--data {name}: the loader failed", load, mend):
        items = load(path, want)
        if not hasattr(items, "__iter__"):
            raise UserError(f"--data {name}: load gave {type(items).__name__}, not trajectories")
        yield from items


def _checked(name: str, items: Iterable[object], want: Want) -> Loaded:
    for trajectory in items:
        if not isinstance(trajectory, Trajectory | Unreadable):
            raise UserError(
                f"--data {name}: load gave {type(trajectory).__name__} where a Trajectory or "
                "Unreadable belongs"
            )
        if isinstance(trajectory, Unreadable) or want(trajectory.key):
            yield trajectory
