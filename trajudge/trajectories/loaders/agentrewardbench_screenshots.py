"""Where AgentRewardBench's screenshots are.

``screenshot_path`` begins ``trajectories/screenshots/...``: relative to whatever folder the
dataset was downloaded into. It comes out of a file that anybody may have written, so nothing
outside the dataset's own folder is ever referred to, be it by ``..`` or by a link.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from trajudge.trajectories.images.prepare import is_image_file
from trajudge.trajectories.model import ImageRef
from trajudge.trajectories.util.safe_files import DataFolder

_MISSING = "is missing"
_MEND = {
    _MISSING: ": fetch it, for instance with  trajudge data fetch agentrewardbench "
    "--screenshots all"
}


class Screenshots:
    """Finds screenshots below the dataset's folder ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = DataFolder(root)

    def find(
        self, paths: Iterable[str | None], benchmark: str, agent: str, task_id: str
    ) -> tuple[list[ImageRef | None], list[str]]:
        """Find the screenshot of each step.

        Returns a reference per path, None where the file names none, and sentences about those that
        are missing or not read: their references hold the same as a problem.
        """
        folder = self.root / "screenshots" / _name(benchmark) / _name(agent) / _name(task_id)
        refs = list[ImageRef | None]()
        missing = dict[str, list[int]]()
        for index, path in enumerate(paths):
            location, reason = self._one(path, folder) if path else (None, "")
            if reason:
                missing.setdefault(reason, []).append(index)
                refs.append(ImageRef(problem=f"{_shown(path)} {reason}{_MEND.get(reason, '')}"))
            else:
                refs.append(ImageRef(path=location) if location else None)
        sentences = [
            f"The screenshot of step {_steps(indices)} {reason}."
            for reason, indices in missing.items()
        ]
        return refs, sentences

    def _one(self, path: str, folder: Path) -> tuple[Path | None, str]:
        problem = _MISSING
        # Plain strings: a run of 50 steps asks for 100 names, and pathlib would cost more than
        # decoding the file.
        for name in self._candidates(path, folder):
            if not os.path.lexists(name):
                continue
            candidate = Path(name)
            if not self.data.holds(name):
                problem = "lies outside the dataset's folder and is not read"
                continue
            problem = is_image_file(candidate) or ""
            if not problem:
                return candidate, ""
        return None, problem

    def _candidates(self, path: str, folder: Path) -> Iterator[str]:
        """Yield the path as the file says, seen from the dataset's folder; then by name where it
        belongs."""
        if "\0" in path:
            return
        yield os.path.join(self.root, path.removeprefix("trajectories/"))  # noqa: PTH118
        yield os.path.join(folder, path.rpartition("/")[2])  # noqa: PTH118


def _name(part: str) -> str:
    """Reduce to a single harmless path segment."""
    return PurePosixPath(part.replace("\0", "")).name or "_"


def _shown(path: str | None) -> str:
    """Shorten a path out of a file, for a sentence."""
    return (path or "").encode("utf-8", "replace").decode()[-200:]


def _steps(indices: list[int]) -> str:
    """List indices as ``0``, or ``0, 1, 2`` with the middle of a long list left out."""
    if len(indices) <= 4:
        return ", ".join(map(str, indices))
    return f"{indices[0]}, {indices[1]}, ..., {indices[-1]} ({len(indices)} steps)"
