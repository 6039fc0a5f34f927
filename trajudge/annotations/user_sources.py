"""Labels of the users': a source from a package (entry point group ``trajudge.annotations``) or a
single file, a module with ``load(path)`` that gives annotations."""

from __future__ import annotations

from pathlib import Path

from trajudge.annotations.model import Annotation
from trajudge.trajectories.plugins import Door, mistakes_said, refuse_async
from trajudge.util.errors import UserError

DOOR = Door(group="trajudge.annotations", option="--annotations")


def load_with(name: str, path: Path) -> list[Annotation]:
    """Read annotations with a user's source. Raises UserError if it cannot be loaded, or gives
    something else."""
    load = getattr(DOOR.module(name), "load", None)
    if not callable(load):
        raise UserError(
            f"--annotations {name}: defines no source: write  def load(path)  that gives "
            "annotations"
        )
    refuse_async(f"--annotations {name}", load, "def load(path)")
    with mistakes_said(f"--annotations {name}: the source failed", load, "correct it"):
        loaded = load(path)
        if not hasattr(loaded, "__iter__"):
            raise UserError(
                f"--annotations {name}: load gave {type(loaded).__name__}, not annotations"
            )
        annotations = list(loaded)
    for one in annotations:
        if not isinstance(one, Annotation):
            raise UserError(
                f"--annotations {name}: load gave {type(one).__name__} where an Annotation belongs"
            )
    return annotations
