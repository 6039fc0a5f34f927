"""Pictures of a record: files that it names, and base64 that stands in it.

A record comes from somebody else, so the path that it names never decides what is opened: only its
last component counts, and it is looked for in folders that the loader knows. A recorder's own
absolute path is common and means nothing here; a picture that is not found is *missing*.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Sequence
from pathlib import Path

from trajudge.trajectories.images import header
from trajudge.trajectories.loaders.files import readable, screenshot
from trajudge.trajectories.model import ImageRef
from trajudge.trajectories.util.safe_files import DataFolder

MAX_INLINE_BYTES = 20 * 2**20
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._@ -]{1,255}")
_DATA_URL = re.compile(r"data:[^,]{0,200},", re.IGNORECASE)


def plain_name(recorded: object) -> str | None:
    """Return the last component of a recorded path (of either kind of separator); None where that
    is no plain file name."""
    if not isinstance(recorded, str):
        return None
    name = re.split(r"[/\\]", recorded.strip())[-1]
    return name if _PLAIN_NAME.fullmatch(name) and name.strip(". ") else None


def find_file(recorded: object, folders: Sequence[Path], root: DataFolder) -> Path | None:
    """Find the file that a record names in the first of the folders that holds it, None if none
    does. Links that lead out of the data are passed over."""
    name = plain_name(recorded)
    if name is None:
        return None
    places = (folder / name for folder in folders)
    return next((place for place in places if root.has_file(place)), None)


def named_picture(
    recorded: object, folders: Sequence[Path], root: DataFolder, warnings: list[str]
) -> ImageRef | None:
    """Make a reference to the picture that a record names, not decoded; None if it names none.

    What cannot be read is a reference that holds only the problem, with a sentence in
    ``warnings``.
    """
    if recorded is None or recorded == "":
        return None
    name = plain_name(recorded)
    if name is None:
        shown = readable(str(recorded))[:80]
        warnings.append(f"The screenshot {shown!r} is no file name.")
        return ImageRef(problem=f"the screenshot {shown!r} is no file name")
    places = [folder / name for folder in folders]
    # What stands there, even as a pipe or a link out, is told as what it is.
    place = next((place for place in places if os.path.lexists(place)), places[0])
    return screenshot(place, root, warnings)


def inline_picture(value: object, place: str, warnings: list[str]) -> ImageRef | None:
    """Decode a picture that stands in a record as base64 or as a ``data:`` URL; None for None or an
    empty text. The bytes say what it is, not the URL's label.

    ``place`` names the picture in the sentence that ``warnings`` gets for one that cannot be
    used, such as ``of step 3``; the picture is then a reference that holds only the problem.
    """
    if value is None or value == "":
        return None
    try:
        return ImageRef(data=_decoded(value))
    except ValueError as error:
        warnings.append(f"The picture {place} {error}.")
        return ImageRef(problem=f"the picture {place} {error}")


def _decoded(value: object) -> bytes:
    """Decode base64 to the bytes of an image. Raises ValueError with the predicate of a
    sentence."""
    if not isinstance(value, str):
        raise ValueError("is no text")
    label = _DATA_URL.match(value)
    if label and ";base64" not in label[0].lower():
        raise ValueError("is a data URL without base64")
    text = value[label.end() :] if label else value
    if len(text) > MAX_INLINE_BYTES * 3 // 2:
        raise ValueError(f"is larger than {MAX_INLINE_BYTES // 2**20} MiB")
    try:
        compact = "".join(text.split()).rstrip("=")
        content = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is no base64") from None
    if len(content) > MAX_INLINE_BYTES:
        raise ValueError(f"is larger than {MAX_INLINE_BYTES // 2**20} MiB")
    if problem := header.not_an_image(content[:64]):
        raise ValueError(problem)
    return content
