"""Files written whole or not at all; what goes wrong is one sentence."""

from __future__ import annotations

from pathlib import Path

from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError


def write_whole(path: Path, content: bytes) -> None:
    """Write the file whole or not at all. Raises UserError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}): choose another folder"
        ) from error
