"""Screenshots of training data: files named by their content, in one folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from trajudge.trajectories.images import MAX_DECODED_PIXELS, MAX_DECODED_SIDE, load_picture
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import save_bytes

FOLDER = "images"
_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg"}
# OpenAI's limit for an image of a fine-tuning example.
_MOST_BYTES = 10_000_000


class ScreenshotFolder:
    """Saves the screenshots that examples name; ``problems`` counts those that could not be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: Counter[str] = Counter()
        self._written: set[str] = set()

    def save(self, ref: ImageRef | None) -> str | None:
        """Write a screenshot; return its path below the folder, None where there is none.

        Raises UserError for a folder that cannot be written.
        """
        if ref is None:
            self.problems["not recorded"] += 1
            return None
        try:
            picture = load_picture(
                ref,
                max_side=MAX_DECODED_SIDE,
                max_pixels=MAX_DECODED_PIXELS,
                max_bytes=_MOST_BYTES,
                media_types=frozenset(_SUFFIXES),
            )
        except ImageUnreadable:
            self.problems["unreadable"] += 1
            return None
        name = f"{FOLDER}/{picture.sha256}.{_SUFFIXES[picture.media_type]}"
        if name not in self._written:
            save_bytes(self.folder / name, picture.data)
            self._written.add(name)
        return name


def no_screenshot(_ref: ImageRef | None) -> None:
    """Leave screenshots out."""
