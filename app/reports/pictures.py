"""Screenshots made small enough for a file that holds many: WebP, at most 900 pixels wide."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import NamedTuple

from trajudge.trajectories.images.prepare import load_picture
from trajudge.trajectories.model import ImageRef

WIDTH, HEIGHT, QUALITY = 900, 1_400, 60
"""Pixels at most, and WebP's quality from 0 to 100."""
_LARGEST = 2**31
_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})


class SmallPicture(NamedTuple):
    """``source`` is a data URL; width and height in pixels."""

    source: str
    width: int
    height: int


def small_picture(ref: ImageRef) -> SmallPicture:
    """Decode a screenshot, shrink it, and cut the bottom of a very long page. Raises
    ImageUnreadable (one sentence); the size is checked before it is decoded."""
    loaded = load_picture(
        ref, max_side=_LARGEST, max_pixels=_LARGEST, max_bytes=_LARGEST, media_types=_TYPES
    )
    from PIL import Image  # noqa: PLC0415 - a report without images needs none

    with Image.open(BytesIO(loaded.data)) as image:
        whole = image.convert("RGB")
    if whole.width > WIDTH:
        height = max(1, round(whole.height * WIDTH / whole.width))
        whole = whole.resize((WIDTH, height), Image.Resampling.LANCZOS)
    whole = whole.crop((0, 0, whole.width, min(whole.height, HEIGHT)))
    encoded = BytesIO()
    whole.save(encoded, "WEBP", quality=QUALITY, method=4)
    data = b64encode(encoded.getvalue()).decode()
    return SmallPicture(f"data:image/webp;base64,{data}", whole.width, whole.height)
