"""Zip archives that somebody else wrote, read in memory and never extracted.

What an archive says of its members is held to limits before a byte is expanded, and what comes out
to what was said: number, sizes, ratio, members that lie over each other, names that lead elsewhere.
Zstandard (method 93, which ``zipfile`` learnt in Python 3.14) is read beside deflate.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from trajudge.trajectories.loaders.files import Damaged, readable
from trajudge.trajectories.util.safe_files import DataFolder

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
            return _zstandard(raw, limit)
    except (zlib.error, ValueError) as error:
        raise Damaged(f"{place} is damaged ({error})") from None
    raise Damaged(f"{place} is compressed by {_METHODS.get(method, f'method {method}')}")


def _zstandard(raw: bytes, limit: int) -> bytes:
    """Expand Zstandard. Raises ValueError."""
    import zstandard  # noqa: PLC0415 - only for archives that need it

    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW).stream_reader(raw)
    try:
        return reader.read(limit)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


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
