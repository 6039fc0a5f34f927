"""A file in the user's cache with the needed fields of published judgments, so that they are read
once.

One file holds them for all judgments of a folder. An entry counts for a file whose size, time of
change and status-change time are those it was read at: the last one cannot be set by an archive
or a copy, so an index that came with somebody's data is never believed. Format: four bytes of
magic, the CRC-32 of what follows, MessagePack.
"""

from __future__ import annotations

import errno
import os
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from trajudge.eval.data.index.cache_place import SETTLED, place_in_cache
from trajudge.eval.data.published.columns import Identity, identity_of
from trajudge.eval.data.published.file import JudgmentFile, read_file
from trajudge.eval.data.published.listing import JudgeFolder
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.safe_files import DataFolder, read_regular

NAME = ".index.msgpack"
# A pipe among the files must not be waited for.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_MAGIC = b"TJX1"
_MAX_BYTES = 2_000_000_000


class _Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    size: int
    changed: int
    status_changed: int
    file: JudgmentFile

    def fits(self, status: os.stat_result) -> bool:
        return self.identity == identity_of(status)

    @property
    def identity(self) -> Identity:
        return self.size, self.changed, self.status_changed


_Folders = dict[str, dict[str, _Entry]]
_DECODER = msgspec.msgpack.Decoder(_Folders)


class JudgmentIndex:
    """Reads judgment files below ``root``, those that did not change from the index.

    ``root`` is the folder with BENCHMARK/AGENT/JUDGE, ``data`` what no file may lie outside of
    (``root`` itself, if it is not given). ``notes`` says what went wrong; nothing
    that goes wrong with the index changes what is read. Files that changed less than ``settled``
    nanoseconds ago are not kept.
    """

    def __init__(
        self, root: Path, *, data: DataFolder | None = None, settled: int = SETTLED
    ) -> None:
        self._data = data or DataFolder(root)
        self.notes: list[str] = []
        self._settled = settled
        self._root = str(root)
        self._place = place_in_cache(root, NAME)
        self._known = self._load()
        self._seen: _Folders = {}
        self._fresh = 0

    def read(self, folder: str, name: str) -> JudgmentFile:
        """Read the fields of ``folder/name``. Raises OSError, ValueError, RecursionError."""
        path, within = f"{folder}/{name}", folder.removeprefix(self._root)
        entry = self._known.get(within, {}).get(name)
        if entry is None or not entry.fits(os.stat(path)):  # noqa: PTH116 - many times quicker
            entry = _read(folder, path, self._data)
            self._fresh += 1
            if max(entry.changed, entry.status_changed) > time.time_ns() - self._settled:
                return entry.file
        self._seen.setdefault(within, {})[name] = entry
        return entry.file

    def identities(self, folders: Iterable[JudgeFolder]) -> list[Identity] | None:
        """Return what the files of these folders were known by when they were read; None where
        one is not kept."""
        try:
            return [
                seen[name].identity
                for folder in folders
                for seen in [self._seen[folder.path.removeprefix(self._root)]]
                for name in folder.files.values()
            ]
        except KeyError:
            return None

    def save(self) -> None:
        """Write what was read, where something is new or gone; notes where that fails."""
        gone = _count(self._seen) < _count(self._known)
        if not (gone or (self._fresh and self._seen)):
            return
        try:
            body = msgspec.msgpack.encode(self._seen)
        except OverflowError as error:
            self.notes.append(f"the judgments' index was not written: {error}")
            return
        content = _MAGIC + zlib.crc32(body).to_bytes(4, "big") + body
        if self._place is None:
            return
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self._place, content)
        except OSError as error:
            self.notes.append(
                f"{self._place}: the judgments' index was not written ({error.strerror})"
            )

    def _load(self) -> _Folders:
        if self._place is None:
            return {}
        try:
            return _decode(read_regular(self._place, _MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self.notes.append(f"{self._place}: is not a readable index and is made anew ({error})")
            return {}


def read_unindexed(data: DataFolder, folder: str, name: str) -> JudgmentFile:
    """Read the fields of ``folder/name`` without an index. Raises as ``JudgmentIndex.read``."""
    return _read(folder, f"{folder}/{name}", data).file


def _read(folder: str, path: str, data: DataFolder) -> _Entry:
    descriptor = _opened(folder, path, data)
    try:
        status = os.fstat(descriptor)
        return _Entry(*identity_of(status), read_file(descriptor, status.st_size))
    finally:
        os.close(descriptor)


def _opened(folder: str, path: str, data: DataFolder) -> int:
    """Open the file in ``folder`` and return its descriptor. Opening alone tells whether
    it is a link, therefore all other files cost nothing more."""
    if _NO_LINK and data.holds_folder(folder):
        try:
            return os.open(path, _READING | _NO_LINK)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
    if not data.holds(path):
        raise ValueError("it leads out of the data folder")
    return os.open(path, _READING)


def _decode(content: bytes) -> _Folders:
    """Decode an index. Raises ValueError unless the content is a whole one."""
    if content[:4] != _MAGIC:
        raise ValueError("its first bytes are not an index's")
    if zlib.crc32(memoryview(content)[8:]) != int.from_bytes(content[4:8], "big"):
        raise ValueError("its checksum is wrong")
    return _DECODER.decode(memoryview(content)[8:])


def _count(folders: _Folders) -> int:
    return sum(map(len, folders.values()))
