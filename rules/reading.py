"""Reading the user's JSON files: bounded, and every mistake one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trajectories.errors import UserError

MAX_BYTES = 512 * 2**20

Decoded = TypeVar("Decoded")


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """The file's bytes without a byte-order mark. Raises UserError if absent or too large."""
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise UserError(f"{path}: {size} bytes are more than the {max_bytes} that are read")
        with path.open("rb") as file:
            return file.read(max_bytes).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a readable file") from error


def decode(data: bytes, kind: type[Decoded] | Any, source: object) -> Any:
    """JSON as ``kind``. Raises UserError that names ``source`` and the place in it."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as error:
        raise UserError(f"{source}: nested too deeply to be read: flatten the file") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{source}: {error}: mend the file (see rules/schema.md)") from error
