"""Screenshots made small enough for a file that holds many: WebP, at most 900 pixels wide."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from trajudge.trajectories.images import load_picture
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import UserError
from trajudge.util.files import write_bytes

WIDTH, HEIGHT, QUALITY = 900, 1_400, 60
"""Pixels at most, and WebP's quality from 0 to 100."""
_LARGEST = 2**31
_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})


class SmallPicture(NamedTuple):
    """``data`` is WebP; width and height in pixels."""

    data: bytes
    width: int
    height: int

    def data_url(self) -> str:
        return f"data:image/webp;base64,{b64encode(self.data).decode()}"

    def written(self, folder: Path) -> str:
        """Write it into ``folder/img`` and return its address there. Raises UserError."""
        file = folder / "img" / f"{sha256(self.data).hexdigest()}.webp"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(file, self.data)
        except OSError as error:
            raise UserError(f"{file}: cannot be written ({error.strerror})") from error
        return f"img/{file.name}"


def small_picture(ref: ImageRef) -> SmallPicture:
    """Decode a screenshot, shrink it, and cut the bottom of a very long page. Raises
    ImageUnreadable (one sentence); the size is checked before it is decoded."""
    loaded = load_picture(
        ref, max_side=_LARGEST, max_pixels=_LARGEST, max_bytes=_LARGEST, media_types=_TYPES
    )
    with Image.open(BytesIO(loaded.data)) as image:
        whole = image.convert("RGB")
    if whole.width > WIDTH:
        height = max(1, round(whole.height * WIDTH / whole.width))
        whole = whole.resize((WIDTH, height), Image.Resampling.LANCZOS)
    whole = whole.crop((0, 0, whole.width, min(whole.height, HEIGHT)))
    encoded = BytesIO()
    whole.save(encoded, "WEBP", quality=QUALITY, method=4)
    return SmallPicture(encoded.getvalue(), whole.width, whole.height)


def remove_pictures(folder: Path) -> None:
    """Remove what ``written`` wrote for an earlier report: it may show what this one leaves out.
    Raises OSError."""
    for file in folder.glob("img/*.webp"):
        if re.fullmatch("[0-9a-f]{64}", file.stem):
            file.unlink()
