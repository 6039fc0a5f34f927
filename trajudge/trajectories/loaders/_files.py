"""Shared by loaders: bounded reading, archives read in memory, detection of formats, partial
decoding of JSON, images that a record names or contains."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import msgspec
import zstandard
from msgspec import Raw

from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, NotUtf8, UnsafeFile, open_regular, utf8

HEAD_BYTES = 64 * 2**10

MAX_FILES = 20

LEVELS = 2

MAX_FOLDERS = 400

_TEXTS = ("*.json*", "*.html")


def head(file: Path) -> bytes:
    """Read the first 64 KiB of a regular file; empty for anything else."""
    try:
        with open_regular(file) as opened:
            return opened.read(HEAD_BYTES)
    except (OSError, UnsafeFile):
        return b""


def check_utf8(path: Path) -> None:
    """Raise NotUtf8 for a file in UTF-16, and for a folder with such a file among the first 20
    JSON files or pages, because no format could be recognised."""
    inside = (file for pattern in _TEXTS for file in files(path, pattern, max_folders=MAX_FOLDERS))
    for file in [path] if path.is_file() else islice(inside, MAX_FILES):
        utf8(head(file), file)


def some_file(path: Path, pattern: str, has_mark: Callable[[bytes], bool]) -> bool:
    """Return True if the path is a file with the mark in its first 64 KiB, or a folder with such
    a file, whose name matches ``pattern``, at most two levels down; at most 20 files in 400
    folders are searched."""
    if path.is_file():
        return has_mark(head(path))
    return any(
        has_mark(head(file))
        for file in islice(files(path, pattern, max_folders=MAX_FOLDERS), MAX_FILES)
    )


def files(
    path: Path, pattern: str, *, levels: int = LEVELS, max_folders: int | None = None
) -> Iterator[Path]:
    """Yield the entries of a folder whose names match ``pattern``, by level and then by name, at
    most ``levels`` levels down. Pipes and folders with a matching name are included, so that a
    loader reports them as unreadable. Hidden folders, links to folders, and folders beyond the
    first ``max_folders`` (None: no limit) are skipped."""
    level, looked_at = [path] if path.is_dir() else [], 0
    for depth in range(levels + 1):
        deeper: list[Path] = []
        for folder in level:
            if looked_at == max_folders:
                return
            looked_at += 1
            inside = sorted(folder.iterdir())
            yield from (entry for entry in inside if entry.match(pattern))
            if depth < levels:
                shown = (entry for entry in inside if not entry.name.startswith("."))
                deeper += [entry for entry in shown if not entry.is_symlink() and entry.is_dir()]
        level = deeper


def find_logs(
    path: Path,
    kind: str,
    pattern: str,
    levels: int,
    needed: str,
    *,
    is_one: Callable[[Path], bool] = lambda file: True,
) -> list[Path]:
    """List the file itself, or the files with a name in the folder of which ``is_one`` is True.
    Raises UserError, with what is ``needed``, without any."""
    listed = [path] if path.is_file() else files(path, pattern, levels=levels)
    return list_runs(path, kind, needed, (file for file in listed if is_one(file)))


def list_runs(path: Path, kind: str, needed: str, runs: Iterable[Path]) -> list[Path]:
    """List the runs of a kind at the path. Raises UserError, with what is ``needed``, without
    any, or if a folder cannot be listed."""
    try:
        listed = [*runs]
    except OSError as error:
        raise UserError(f"{path} cannot be listed ({error.strerror}): check its access") from None
    if not listed:
        raise UserError(f"{path} holds no {kind} trajectory: --data {kind}:PATH needs {needed}")
    return listed


T = TypeVar("T")

MAX_JSON_BYTES = 256 * 2**20


class Damaged(ValueError):
    """A trajectory's files cannot be read; the message is the reason of its ``Unreadable``."""


def reason(error: Exception) -> str:
    """Return in one line why a file cannot be read."""
    line = readable(" ".join(str(error).split()))
    return line[:500] or type(error).__name__


def decode(root: DataFolder, path: Path, kind: type[T], *, max_bytes: int = MAX_JSON_BYTES) -> T:
    """Decode the fields of ``kind`` in a JSON file of the data, and skip the others. Raises
    Damaged."""
    try:
        decoder: msgspec.json.Decoder[T] = _decoder(cast(Any, kind))
        return python_json.decode(utf8(root.read(path, max_bytes), path), decoder)
    except (UnsafeFile, NotUtf8) as error:
        raise Damaged(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{readable(path.name)} is not the JSON expected: {reason(error)}") from None
    except OSError as error:
        raise Damaged(f"{readable(path.name)} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=64)
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


def text(value: object) -> str | None:
    """Return a text without lone surrogates (which pages may have); None for a blank text or
    another value."""
    if not isinstance(value, str) or not value.strip():
        return None
    return readable(value)


def readable(value: str) -> str:
    """Replace every lone surrogate by a mark."""
    return value.encode("utf-8", "replace").decode("utf-8")


def name_of(folder: Path) -> str:
    """Return a folder's name as text, also for ``.`` and names that are not UTF-8."""
    return readable(folder.resolve().name)


def numbers(values: Mapping[str, object]) -> dict[str, float]:
    """Return the finite numbers among ``values``, without booleans."""
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300
    }


_STORED, _DEFLATED, _ZSTANDARD = 0, 8, 93

_METHODS = {
    **{1: "shrink", 6: "implode", 9: "deflate64", 12: "bzip2", 14: "LZMA", 95: "XZ"},
    **{96: "JPEG", 97: "WavPack", 98: "PPMd", 99: "AES encryption"},
}

_ZSTD_MAX_WINDOW = 2**27

# A member of this size costs nothing, whatever its ratio.
_FREE_BYTES = 2**20

# Local header: signature, 22 bytes that the directory repeats, the lengths of name and extra field.
_LOCAL = struct.Struct("<4s22xHH")

_END = struct.Struct("<4s4H2LH")

_LOCATOR = struct.Struct("<4sLQL")

_END_64 = struct.Struct("<4sQ2H2L4Q")

_MAX_COMMENT = 2**16

_ENTRY_BYTES = 160


class ArchiveLimits(NamedTuple):
    """Limits of an archive: ``members``, expanded bytes in ``total`` (with ``grows`` more, up to
    ``ratio`` times the archive's size), and bytes and compression ratio of one ``member``."""

    members: int = 10_000
    total: int = 256 * 2**20
    member: int = 64 * 2**20
    ratio: int = 200
    grows: bool = False


LIMITS = ArchiveLimits()


class Archive:
    """The members of an opened archive by name; of repeated names the last one counts."""

    def __init__(self, file: BinaryIO, name: str, limits: ArchiveLimits) -> None:
        """Read the directory. Raises Damaged for another file or beyond the limits."""
        self._file, self._name, self._limits = file, name, limits
        size = file.seek(0, 2)
        if _directory_bytes(file, size) > limits.members * _ENTRY_BYTES:
            raise Damaged(f"{name} lists more than {limits.members:,} members")
        try:
            with zipfile.ZipFile(file) as archive:
                infos = archive.infolist()
        except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError) as error:
            raise Damaged(f"{name} is no whole zip archive ({error})") from None
        self._check(infos, size)
        self._infos = {info.filename: info for info in infos}

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __contains__(self, member: str) -> bool:
        return member in self._infos

    def read(self, member: str) -> bytes:
        """Expand one member. Raises Damaged if it cannot be read within the limits."""
        info, location = self._infos[member], f"{self._name}: {readable(member)[:80]}"
        if info.filename.startswith(("/", "\\")) or ".." in PurePosixPath(info.filename).parts:
            raise Damaged(f"{location} has a name that leads out of the archive")
        if info.flag_bits & 1:
            raise Damaged(f"{location} is encrypted")
        if max(info.file_size, info.compress_size) > self._limits.member:
            raise Damaged(f"{location} is larger than {self._limits.member // 2**20} MiB")
        if info.file_size > max(_FREE_BYTES, self._limits.ratio * info.compress_size):
            raise Damaged(f"{location} expands to more than {self._limits.ratio} times its size")
        content = _expanded(self._raw(info, location), info, location)
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise Damaged(f"{location} is damaged (its size or its checksum is another)")
        return content

    def _raw(self, info: zipfile.ZipInfo, location: str) -> bytes:
        self._file.seek(info.header_offset)
        head = self._file.read(_LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise Damaged(f"{location} is not where the archive's directory says")
        _, name_bytes, extra_bytes = _LOCAL.unpack(head)
        self._file.seek(name_bytes + extra_bytes, 1)
        raw = self._file.read(info.compress_size)
        if len(raw) < info.compress_size:
            raise Damaged(f"{location} is cut")
        return raw

    def _check(self, infos: list[zipfile.ZipInfo], size: int) -> None:
        limits = self._limits
        if len(infos) > limits.members:
            raise Damaged(f"{self._name} holds more than {limits.members:,} members")
        allowed = max(limits.total, limits.ratio * size if limits.grows else 0)
        if sum(info.file_size for info in infos) > allowed:
            raise Damaged(f"{self._name} expands to more than {allowed // 2**20:,} MiB")
        end = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            if info.header_offset < end:
                raise Damaged(f"{self._name} holds members that lie over each other")
            end = info.header_offset + _LOCAL.size + info.compress_size


@contextmanager
def open_archive(path: Path, root: DataFolder, limits: ArchiveLimits = LIMITS) -> Iterator[Archive]:
    """Open an archive of the data. Raises Damaged, and UnsafeFile and OSError as ``DataFolder``."""
    with root.open(path) as file:
        yield Archive(file, readable(path.name), limits)


def _expanded(raw: bytes, info: zipfile.ZipInfo, location: str) -> bytes:
    """Expand the bytes of a member, to at most one byte more than it declares."""
    limit, method = info.file_size + 1, info.compress_type
    if method == _STORED:
        return raw
    try:
        if method == _DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, limit)
        if method == _ZSTANDARD:
            zstd = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
            return zstd.stream_reader(raw).read(limit)
    except (zlib.error, zstandard.ZstdError) as error:
        raise Damaged(f"{location} is damaged ({error})") from None
    raise Damaged(f"{location} is compressed by {_METHODS.get(method, f'method {method}')}")


def _directory_bytes(file: BinaryIO, size: int) -> int:
    """Return the declared length of the archive's directory; 0 without an end record."""
    start = max(0, size - _MAX_COMMENT - _END.size)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + _END.size:
        return 0
    directory: int = _END.unpack_from(tail, at)[5]
    if at >= _LOCATOR.size and tail.startswith(b"PK\x06\x07", at - _LOCATOR.size):
        file.seek(min(_LOCATOR.unpack_from(tail, at - _LOCATOR.size)[2], size))
        record = file.read(_END_64.size)
        if len(record) == _END_64.size and record.startswith(b"PK\x06\x06"):
            directory = _END_64.unpack(record)[8]
    return directory


# Each object or list takes some 400 bytes in memory, of three in the file.
MAX_STRUCTURES = 300_000

_OPENING = re.compile(rb'([{\[])|"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

NULL = Raw(b"null")

_OBJECT = msgspec.json.Decoder(dict[str, Any])


def read_object(root: DataFolder, path: Path, *, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Read the JSON object in a file of the data. Raises Damaged, also for one of more than 300,000
    objects and lists."""
    content = bytes(decode(root, path, Raw, max_bytes=max_bytes))
    check_structures(content)
    try:
        return parse_object(content)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{readable(path.name)} is not the JSON expected: {reason(error)}") from None


def record_of(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """Return the elements of a list; another value as a list of one, null as an empty list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def parse_object(content: bytes) -> dict[str, Any]:
    """Decode an object as Python writes it. Raises ValueError for anything else, RecursionError."""
    return python_json.decode(content, _OBJECT)


def check_structures(content: bytes) -> None:
    """Raise Damaged for JSON of more than 300,000 objects and lists, whatever its texts hold."""
    if content.count(b"{") + content.count(b"[") <= MAX_STRUCTURES:
        return
    openings = (match for match in _OPENING.finditer(content) if match[1])
    if next(islice(openings, MAX_STRUCTURES, None), None):
        raise Damaged(f"it holds more than {MAX_STRUCTURES:,} objects and lists")
