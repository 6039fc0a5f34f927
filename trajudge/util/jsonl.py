"""JSON of other programs: lines that may be compressed or damaged, NaN and large numbers, and
lone surrogates, which UTF-8 cannot encode."""

from __future__ import annotations

import gzip
import json
import mmap
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec
import orjson
import zstandard

from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, UnsafeFile, open_regular, utf8, without_surrogates

T = TypeVar("T")

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
    """A line; ``number`` counts from 1. ``problem`` is the reason why ``data`` is not its
    content."""

    number: int
    data: bytes
    problem: str = ""


class _Damaged(Exception):
    """The compressed stream is invalid or ends early."""


def read_lines(
    path: Path, max_line_bytes: int = MAX_LINE_BYTES, folder: DataFolder | None = None
) -> Iterator[Line]:
    """Yield the non-empty lines of a file (``.gz`` and ``.zst`` are decompressed), without a
    byte-order mark.

    A line that is too long, and the position at which a compressed file is damaged, are a Line with
    a problem. Raises UserError for a decompression bomb, UTF-16, or a file that cannot be opened or
    is outside ``folder``.
    """
    number, parts, size = 1, list[bytes](), 0
    try:
        for piece in _pieces(path, folder):
            *ended, rest = piece.split(b"\n")
            for end in ended:
                parts.append(end)
                yield from _line(path, number, parts, size + len(end), max_line_bytes)
                number, size = number + 1, 0
            size += len(rest)
            # The rest of a line that is too long is skipped.
            parts = [*parts, rest] if size <= max_line_bytes else []
            if size > max_line_bytes + MAX_SKIPPED_BYTES:
                raise _Damaged(f"a line goes on for more than {MAX_SKIPPED_BYTES:,} bytes")
        yield from _line(path, number, parts, size, max_line_bytes)
    except _Damaged as error:
        yield Line(number, b"", f"the file is damaged from here on ({error})")


def _line(path: Path, number: int, parts: list[bytes], size: int, limit: int) -> Iterator[Line]:
    """Yield the line of these parts, which are emptied: while it is read, it is in memory once."""
    if size > limit:
        parts.clear()
        yield Line(number, b"", f"the line is longer than {limit} bytes")
        return
    parts[:] = [b"".join(parts)]
    if number == 1:
        parts[:] = [utf8(parts[0], path)]
    if parts[0] and not parts[0].isspace():
        yield Line(number, parts.pop())
    parts.clear()


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
    """Decompress frame by frame, because the library's stream reader does not detect a truncated
    frame."""

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


# A repaired copy is in memory in addition to the file.
MAX_REPAIRED_BYTES = 128 * 2**20

# Escapes as wholes, so that the second backslash of a pair begins none; pairs before halves.
_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

_HALF = len(rb"\ud83d")

_REWARD = re.compile(rb'"(?:\w*reward|score|success|value)"\s*:\s*\Z')

# All up to the next word outside of a string, and the word. Strings are taken as wholes, and all
# repeats are possessive, so that a string without an end costs no more than one with.
_NUMBERS = re.compile(
    rb'((?:[^"NI-]++|-(?!I)|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+)(-?\bInfinity\b|\bNaN\b|)', re.DOTALL
)


def decode(
    content: bytes | mmap.mmap, decoder: msgspec.json.Decoder[T], *, numbers: bool = True
) -> T:
    """Decode JSON with ``decoder``, including output of Python's ``json`` that is not standard.

    Without ``numbers``, NaN and Infinity remain errors. Raises ValueError (as msgspec does),
    RecursionError.
    """
    try:
        return decoder.decode(content)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        mended = repaired(content, numbers=numbers)
        if mended is None:
            raise
        return decoder.decode(mended)


def encode(value: object, *, default: Callable[[Any], Any] | None = None) -> bytes:
    """Encode JSON compactly, including integers of more than 64 bits and lone surrogates, which
    orjson refuses."""
    try:
        return orjson.dumps(value, default=default)
    except orjson.JSONEncodeError:
        clean = without_surrogates(value)
        text = json.dumps(clean, ensure_ascii=False, separators=(",", ":"), default=default)
        return text.encode("utf-8", "replace")


def repaired(content: bytes | mmap.mmap, *, numbers: bool = True) -> bytes | None:
    """Convert output of Python's ``json`` to standard JSON; None if it is standard already."""
    if len(content) > MAX_REPAIRED_BYTES:
        return None
    before = bytes(content)
    after = before.removeprefix(BOM_UTF8)
    if rb"\u" in after:
        after = _ESCAPES.sub(_whole_character, after)
    if numbers and (b"NaN" in after or b"Infinity" in after):
        after = _NUMBERS.sub(_number, after)
    return after if after != before else None


def _whole_character(match: re.Match[bytes]) -> bytes:
    start = match[0]
    return rb"\ufffd" if len(start) == _HALF else start


def _number(match: re.Match[bytes]) -> bytes:
    if not match[2]:
        return match[0]
    return match[1] + (b'"%s"' % match[2] if _REWARD.search(match[1][-80:]) else b"null")
