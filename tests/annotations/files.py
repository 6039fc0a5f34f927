"""What no reader of labels may wait for or read whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trajudge.util.errors import UserError


def refuses_pipes_and_endless_files(path: Path, load: Callable[[Path], object], limit: str) -> None:
    """Put a pipe and a file beyond the ``limit`` at ``path``, and remove them again."""
    os.mkfifo(path)
    with pytest.raises(UserError, match="is not a file"):
        load(path)
    path.unlink()
    path.touch()
    os.truncate(path, 10 * 2**30)
    with pytest.raises(UserError, match=f"larger than {limit}"):
        load(path)
    path.unlink()
