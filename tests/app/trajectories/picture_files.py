"""Files of pictures, some of them hostile."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from trajudge.app.images import ImageShelf, KnownImage
from trajudge.trajectories.model import ImageRef
from trajudge.util.files import DataFolder


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that declares a large picture."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    crc = struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(head)) + b"IHDR" + head + crc


def put(shelf: ImageShelf, folder: Path, content: bytes, name: str = "shot.png") -> KnownImage:
    (folder / name).write_bytes(content)
    return shelf.put(ImageRef(path=folder / name), DataFolder(folder))
