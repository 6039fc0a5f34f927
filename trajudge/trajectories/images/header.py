"""What an image file says of itself in its first bytes, read without decoding a pixel.

Pillow would tell the size too, but only after its own plugin has opened the file; a bomb must be
known before that. Formats: PNG, JPEG, GIF, WebP (what providers take).
"""

from __future__ import annotations

from typing import NamedTuple

from trajudge.trajectories.util.errors import ImageUnreadable

LFS_POINTER = b"version https://git-lfs"
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
# JPEG frame headers (SOF0..SOF15), without DHT (C4), JPG (C8) and DAC (CC).
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STAND_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})


class Header(NamedTuple):
    """Media type, and width and height in pixels as declared."""

    media_type: str
    width: int
    height: int


def media_type(start: bytes) -> str | None:
    """Detect the media type by the magic bytes; ``start`` is at least the first 12 bytes of the
    file."""
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return name
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return None


def not_an_image(start: bytes) -> str | None:
    """Say why these first bytes are not those of an image; None if they are."""
    if not start:
        return "is empty (zero bytes)"
    if start.startswith(LFS_POINTER):
        return "is a git-LFS pointer, not the image itself (fetch it with  git lfs pull)"
    if media_type(start) is None:
        return "is not a PNG, JPEG, GIF or WebP image"
    return None


def read_header(content: bytes) -> Header:
    """Read the declared size. Raises ImageUnreadable if the bytes are no image or end too early."""
    if reason := not_an_image(content[:64]):
        raise ImageUnreadable(f"image {reason}")
    name = media_type(content[:12]) or ""
    size = _SIZES[name](content)
    if size is None:
        raise ImageUnreadable(f"image is truncated or damaged: no size in its {name} header")
    return Header(name, *size)


def _png(content: bytes) -> tuple[int, int] | None:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


def _gif(content: bytes) -> tuple[int, int] | None:
    if len(content) < 10:
        return None
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _jpeg(content: bytes) -> tuple[int, int] | None:
    """Walk from marker to marker up to the frame header."""
    at = 2
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            return None
        marker = content[at + 1]
        if marker == 0xFF or marker in _STAND_ALONE:
            at += 1 if marker == 0xFF else 2
        elif marker in _START_OF_FRAME:
            return int.from_bytes(content[at + 7 : at + 9]), int.from_bytes(
                content[at + 5 : at + 7]
            )
        else:
            at += 2 + max(2, int.from_bytes(content[at + 2 : at + 4]))
    return None


def _webp(content: bytes) -> tuple[int, int] | None:
    if len(content) < 30:
        return None
    match content[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(
                content[27:30], "little"
            )
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = (int.from_bytes(content[at : at + 2], "little") for at in (26, 28))
            return width & 0x3FFF, height & 0x3FFF
    return None


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
