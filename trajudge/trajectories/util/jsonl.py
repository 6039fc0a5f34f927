"""Lines of a JSON Lines file that may be compressed, damaged, or made to harm.

Memory is bounded by the longest line allowed, whatever the file holds: decompression is done in
small pieces, and a file that expands beyond reason is refused.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, open_regular, utf8

MAX_LINE_BYTES = 128 * 2**20
# How much of a line that is too long is passed over to find the next one: a sparse file is zeros
# without an end.
MAX_SKIPPED_BYTES = 256 * 2**20
# Accessibility trees that repeat from step to step compress 10 to 100 times; a gzip bomb 1,000
# times, a zstd bomb 10,000 times.
MAX_EXPANSION = 400
_EXPANSION_FREE_BYTES = 64 * 2**20
_PIECE_BYTES = 2**20
# One zstd block of 4 bytes may hold 128 KiB, so little is fed at a time.
_ZSTD_PIECE_BYTES = 2048
_ZSTD_MAX_WINDOW = 2**27


class Line(NamedTuple):
    """``number`` counts from 1. ``problem`` says why ``data`` is not the line's content."""

    number: int
    data: bytes
    problem: str = ""


class _Damaged(Exception):
    """The compressed stream ends early or is not one."""


def read_lines(
    path: Path, max_line_bytes: int = MAX_LINE_BYTES, folder: DataFolder | None = None
) -> Iterator[Line]:
    """Yield the non-empty lines of a file (``.gz`` and ``.zst`` are decompressed), without the mark
    that other tools put before the first one.

    A line that is too long, and the place where a compressed file is damaged, come as a Line with
    a problem. Raises UserError for a decompression bomb, UTF-16, or a file that cannot be opened or
    lies outside of ``folder``.
    """
    number, parts, size = 1, list[bytes](), 0
    try:
        for piece in _pieces(path, folder):
            *ended, rest = piece.split(b"\n")
            for end in ended:
                parts.append(end)
                line = b"".join(parts)
                yield from _line(path, number, line, size + len(end), max_line_bytes)
                number, parts, size = number + 1, [], 0
            size += len(rest)
            # The rest of a line that is too long is counted, not kept.
            parts = [*parts, rest] if size <= max_line_bytes else []
            if size > max_line_bytes + MAX_SKIPPED_BYTES:
                raise _Damaged(f"a line goes on for more than {MAX_SKIPPED_BYTES:,} bytes")
        yield from _line(path, number, b"".join(parts), size, max_line_bytes)
    except _Damaged as error:
        yield Line(number, b"", f"the file is damaged from here on ({error})")


def _line(path: Path, number: int, line: bytes, size: int, limit: int) -> Iterator[Line]:
    if size > limit:
        yield Line(number, b"", f"the line is longer than {limit} bytes")
        return
    content = utf8(line, path) if number == 1 else line
    if content.strip():
        yield Line(number, content)


def _pieces(path: Path, folder: DataFolder | None) -> Iterator[bytes]:
    decompress = {".gz": _gzip_pieces, ".zst": _zstd_pieces}.get(path.suffix, _plain_pieces)
    try:
        with folder.open(path) if folder else open_regular(path) as file:
            produced = 0
            for piece in decompress(file):
                produced += len(piece)
                allowed = max(_EXPANSION_FREE_BYTES, MAX_EXPANSION * file.tell())
                if decompress is not _plain_pieces and produced > allowed:
                    raise UserError(
                        f"{path} expands to more than {MAX_EXPANSION} times its size and is "
                        "refused as a decompression bomb: decompress it yourself if you trust it"
                    )
                yield piece
    except gzip.BadGzipFile as error:
        raise _Damaged(str(error)) from error
    except UnsafeFile as error:
        raise UserError(f"{path.parent}: {error}: name the file itself") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error


def _plain_pieces(file: BinaryIO) -> Iterator[bytes]:
    return iter(_reader(file, _PIECE_BYTES), b"")


def _reader(file: BinaryIO, size: int) -> Callable[[], bytes]:
    return lambda: file.read(size)


def _gzip_pieces(file: BinaryIO) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            yield from iter(_reader(stream, _PIECE_BYTES), b"")  # type: ignore[arg-type]
    except (EOFError, zlib.error) as error:
        raise _Damaged(str(error)) from error


def _zstd_pieces(file: BinaryIO) -> Iterator[bytes]:
    """Frame by frame, because the library's stream reader does not tell a truncated frame."""
    import zstandard  # noqa: PLC0415 - only for files that need it

    def new_frame() -> zstandard.ZstdDecompressionObj:
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW).decompressobj()

    frame, begun = new_frame(), False
    try:
        for piece in iter(_reader(file, _ZSTD_PIECE_BYTES), b""):
            pending = piece
            while pending:
                begun = True
                yield frame.decompress(pending)
                pending = b""
                if frame.eof:
                    pending = frame.unused_data
                    frame, begun = new_frame(), False
    except zstandard.ZstdError as error:
        raise _Damaged(str(error)) from error
    if begun:
        raise _Damaged("the last zstd frame is not complete")
