"""How much memory decoding an image takes, and a gate that all threads of a process share.

A file of a few kilobytes can declare a picture of gigabytes, so the need is estimated from the
header before a pixel is decoded: what is more than the gate holds is refused, and what is more
than is free at the moment waits until another image is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import TYPE_CHECKING

from trajudge.trajectories.util.errors import ImageUnreadable

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_IMAGE_MEMORY = 450 * 2**20
"""Bytes that images under work take together in one process."""

# Pillow keeps these without a further copy; every other mode is converted, into 4 bytes a pixel.
_KEPT = frozenset({"L", "RGB", "RGBA"})
_PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2}
# What the libraries hold beside the decoded picture, in bytes a pixel: libwebp's animation decoder
# two canvases and a frame; libjpeg all coefficients of a progressive file, two bytes a component.
_WEBP_BYTES = 12
_PROGRESSIVE_BYTES = 2


class MemoryLimiter:
    """Lets work through as long as its bytes together stay within ``limit``; any thread may wait.

    Whoever holds a share must not ask for another one.
    """

    def __init__(self, limit: int = MAX_IMAGE_MEMORY) -> None:
        self.limit = limit
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Wait for ``size`` bytes, and give them back at the end.

        Raises ImageUnreadable if there are never so many.
        """
        if size > self.limit:
            raise ImageUnreadable(
                f"image takes {size / 2**20:,.0f} MiB to decode, more than the "
                f"{self.limit / 2**20:,.0f} MiB allowed"
            )
        with self._changed:
            self._changed.wait_for(lambda: self._taken + size <= self.limit)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


MEMORY_LIMITER = MemoryLimiter()


def needed(image: Image, size: tuple[int, int]) -> int:
    """Compute the bytes to decode an opened, not yet decoded image and to scale it to ``size``, at
    most.

    Resampling goes by rows first, so what is between has the new width and the old height.
    """
    pixels, channels = image.width * image.height, len(image.getbands())
    total = pixels * _PIXEL_BYTES.get(image.mode, 4)
    if image.mode not in _KEPT or "transparency" in image.info:
        total += 4 * pixels
    if image.format == "WEBP":
        total += _WEBP_BYTES * pixels
    if image.info.get("progressive"):
        total += _PROGRESSIVE_BYTES * channels * pixels
    if size != image.size:
        total += 4 * size[0] * (image.height + size[1])
    return total + 4 * size[0] * size[1]  # the copy that an encoder takes
