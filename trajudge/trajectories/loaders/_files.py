"""What loaders of foreign files share: bounded reading, archives read in memory, formats detected
by their marks, JSON decoded as far as it is needed, pictures that a record names or holds.
"""

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
    """Read the first 64 KiB of a regular file; nothing of anything else."""
    try:
        with open_regular(file) as opened:
            return opened.read(HEAD_BYTES)
    except (OSError, UnsafeFile):
        return b""


def check_utf8(path: Path) -> None:
    """Raise NotUtf8 for a file in UTF-16, and for a folder with such a file among the first 20 that
    are JSON or pages: no format knows its marks."""
    inside = (file for pattern in _TEXTS for file in files(path, pattern, max_folders=MAX_FOLDERS))
    for file in [path] if path.is_file() else islice(inside, MAX_FILES):
        utf8(head(file), file)


def some_file(path: Path, pattern: str, has_mark: Callable[[bytes], bool]) -> bool:
    """Tell whether the path is a file whose first 64 KiB have the mark, or a folder with such a
    file, whose name matches ``pattern``, at most two levels down; at most 20 files in 400 folders
    are looked at."""
    if path.is_file():
        return has_mark(head(path))
    return any(
        has_mark(head(file))
        for file in islice(files(path, pattern, max_folders=MAX_FOLDERS), MAX_FILES)
    )


def files(
    path: Path, pattern: str, *, levels: int = LEVELS, max_folders: int | None = None
) -> Iterator[Path]:
    """Yield what has a name that matches ``pattern`` in a folder, by level and then by name, from
    ``levels`` levels down at most; a pipe or a folder of that name is one too, so that a loader
    names it as unreadable. Folders that are hidden or links are passed over, and so are
    those beyond the first ``max_folders`` (None: all are looked at)."""
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
    """List the file itself, or those of a name in the folder; ``is_one`` tells which are of the
    kind. Raises UserError, which says what is ``needed``, if there is none."""
    listed = [path] if path.is_file() else files(path, pattern, levels=levels)
    return list_runs(path, kind, needed, (file for file in listed if is_one(file)))


def list_runs(path: Path, kind: str, needed: str, runs: Iterable[Path]) -> list[Path]:
    """List the runs of a kind at the path. Raises UserError, which says what is ``needed``, if
    there is none or a folder cannot be listed."""
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
    """Say in one line why a file cannot be read."""
    line = readable(" ".join(str(error).split()))
    return line[:500] or type(error).__name__


def decode(root: DataFolder, path: Path, kind: type[T], *, max_bytes: int = MAX_JSON_BYTES) -> T:
    """Decode the fields of ``kind`` in a JSON file of the data, skipping the rest. Raises
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
    """Return text that can be written as UTF-8 (pages hold lone surrogates); None if blank or no
    text."""
    if not isinstance(value, str) or not value.strip():
        return None
    return readable(value)


def readable(value: str) -> str:
    """Put a mark in place of every lone surrogate."""
    return value.encode("utf-8", "replace").decode("utf-8")


def name_of(folder: Path) -> str:
    """Return a folder's name as text, also where it is given as ``.`` or is not UTF-8."""
    return readable(folder.resolve().name)


def numbers(values: Mapping[str, object]) -> dict[str, float]:
    """Return the finite numbers among ``values``, booleans left out."""
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
    """What an archive may hold: ``members``, bytes expanded in ``total`` (more only up to ``ratio``
    times the archive's size where ``grows``), bytes of one ``member``, and times its compressed
    size."""

    members: int = 10_000
    total: int = 256 * 2**20
    member: int = 64 * 2**20
    ratio: int = 200
    grows: bool = False


LIMITS = ArchiveLimits()


class Archive:
    """The members of an opened archive by name; of two with one name the last one counts."""

    def __init__(self, file: BinaryIO, name: str, limits: ArchiveLimits) -> None:
        """Read the directory. Raises Damaged for one that is no archive or beyond the limits."""
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
        """Expand one member. Raises Damaged for one that cannot be read within the limits."""
        info, place = self._infos[member], f"{self._name}: {readable(member)[:80]}"
        if info.filename.startswith(("/", "\\")) or ".." in PurePosixPath(info.filename).parts:
            raise Damaged(f"{place} has a name that leads out of the archive")
        if info.flag_bits & 1:
            raise Damaged(f"{place} is encrypted")
        if max(info.file_size, info.compress_size) > self._limits.member:
            raise Damaged(f"{place} is larger than {self._limits.member // 2**20} MiB")
        if info.file_size > max(_FREE_BYTES, self._limits.ratio * info.compress_size):
            raise Damaged(f"{place} expands to more than {self._limits.ratio} times its size")
        content = _expanded(self._raw(info, place), info, place)
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise Damaged(f"{place} is damaged (its size or its checksum is another)")
        return content

    def _raw(self, info: zipfile.ZipInfo, place: str) -> bytes:
        self._file.seek(info.header_offset)
        head = self._file.read(_LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise Damaged(f"{place} is not where the archive's directory says")
        _, name_bytes, extra_bytes = _LOCAL.unpack(head)
        self._file.seek(name_bytes + extra_bytes, 1)
        raw = self._file.read(info.compress_size)
        if len(raw) < info.compress_size:
            raise Damaged(f"{place} is cut")
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


def _expanded(raw: bytes, info: zipfile.ZipInfo, place: str) -> bytes:
    """Expand the bytes of a member, to one byte more than it declares at most."""
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
        raise Damaged(f"{place} is damaged ({error})") from None
    raise Damaged(f"{place} is compressed by {_METHODS.get(method, f'method {method}')}")


def _directory_bytes(file: BinaryIO, size: int) -> int:
    """Return how long the archive's directory says it is; 0 where there is no end record."""
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
    """Return the elements of a list; what is none is a list of one, null of none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def parse_object(content: bytes) -> dict[str, Any]:
    """Decode an object as Python writes it. Raises ValueError for anything else,
    RecursionError."""
    return python_json.decode(content, _OBJECT)


def check_structures(content: bytes) -> None:
    """Raise Damaged for JSON of more than 300,000 objects and lists, whatever its texts hold."""
    if content.count(b"{") + content.count(b"[") <= MAX_STRUCTURES:
        return
    openings = (match for match in _OPENING.finditer(content) if match[1])
    if next(islice(openings, MAX_STRUCTURES, None), None):
        raise Damaged(f"it holds more than {MAX_STRUCTURES:,} objects and lists")
