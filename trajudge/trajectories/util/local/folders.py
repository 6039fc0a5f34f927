"""Folders that a command is given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trajudge.trajectories.util.errors import UserError


def refuse_repeated(folders: Iterable[Path]) -> None:
    """Refuse a folder that is given more than once, in whatever spelling: what it holds would
    count twice. Raises UserError."""
    spelled: dict[Path, Path] = {}
    for folder in folders:
        place = folder.resolve()
        if place in spelled:
            first = spelled[place]
            other = "" if first == folder else f"the folder {first}, which is "
            raise UserError(f"{folder}: is {other}given twice: give each folder once")
        spelled[place] = folder
