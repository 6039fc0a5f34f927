"""trajudge's own format: a folder with ``trajectories.jsonl`` and ``images/``."""

from __future__ import annotations

from pathlib import Path

from trajudge.trajectories import store
from trajudge.trajectories.model import Loaded, Want, accept_all
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.util.jsonl import read_lines

KIND = "trajudge"
LEAKS = ("labels.jsonl",)
# Each line that ``store`` writes begins like this.
_START = b'{"format":'


def detect(path: Path) -> bool:
    """Return True if the folder has the file, or the file begins in trajudge's format."""
    file = store.find_file(path)
    if file is None or path.is_dir():
        return file is not None
    first = next(read_lines(file), None)
    return first is not None and first.data.startswith(_START)


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Read the folder, see ``trajectories.store.read``."""
    return store.read(path, want, needs)
