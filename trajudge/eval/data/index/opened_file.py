"""A file of a run whose lines are found by their offset."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from trajudge.eval.data.index.lines import unreadable
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import open_regular

R = TypeVar("R", bound=Record)


class OpenedFile:
    """A file of records that stays readable as it is when another takes its name."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises UserError if it cannot be read."""
        self.path = path
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise unreadable(path, error) from error

    def line(self, offset: int, length: int) -> bytes:
        """Read ``length`` bytes at ``offset``."""
        return os.pread(self._file.fileno(), length, offset)

    def record(self, kind: type[R], offset: int, length: int) -> R:
        """Decode the line of ``length`` bytes at ``offset``. Raises UserError for one that was
        changed."""
        try:
            return kind.model_validate_json(self.line(offset, length))
        except ValidationError as error:
            raise UserError(f"{self.path}: was changed while it was read: read it again") from error
