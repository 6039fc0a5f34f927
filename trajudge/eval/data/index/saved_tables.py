"""Columns of a large file in a side file, so that the file is read once.

The side file counts as long as the files are those that were read (``cache_place``); nothing that
goes wrong with it changes what is read. Format: four bytes of magic, the CRC-32 of what follows,
MessagePack.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from trajudge.eval.data.index.cache_place import (
    FileIdentity,
    identity_of,
    is_settled,
    place_in_cache,
)
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.safe_files import read_regular

# A smaller file is read as quickly as its columns are looked up. Bytes.
LARGE = 2**22
_MAGIC = b"TJC2"
_HEAD = 8  # bytes of magic and checksum

KEY_TYPES = {"benchmark": "i4", "agent": "i4", "task": "i4", "attempt": "i8"}

Names = tuple[str, ...]
T = TypeVar("T")


class NamedColumns(NamedTuple):
    """Columns by name, and the lists of names that they index."""

    names: tuple[Names, ...]
    columns: dict[str, NDArray[Any]]


class _Saved(msgspec.Struct, array_like=True):
    """The bytes of columns by name, and what they are of."""

    identity: tuple[FileIdentity, ...]
    about: Names
    names: tuple[Names, ...]
    columns: dict[str, memoryview]


_DECODER = msgspec.msgpack.Decoder(_Saved)


class SavedTable:
    """A side file at ``place`` (None: nowhere) of what ``identity`` and ``about`` name, of which
    ``about`` says what the columns' rows and numbers mean. ``types`` are those of the columns, of
    numpy's, without the order of bytes. Nothing is kept unless it is ``settled``."""

    def __init__(
        self,
        place: Path | None,
        types: Mapping[str, str],
        about: Names,
        identity: tuple[FileIdentity, ...] = (),
        *,
        settled: bool = True,
    ) -> None:
        self.place = place
        self._types, self._about = types, about
        self._identity, self._settled = identity, settled

    @classmethod
    def of_files(
        cls,
        name: str,
        files: Sequence[Path],
        types: Mapping[str, str],
        about: Names = (),
        *,
        written_here: bool = False,
    ) -> SavedTable:
        """Return the side file ``name`` of ``files``, as these are now: what is read of them
        afterwards is kept for files like these. ``written_here``: by this process, which no other
        writes beside; else files that have changed just now are not kept."""
        identity = tuple(map(identity_of, files))
        place = place_in_cache(files[0], name) if identity[0][0] >= LARGE else None
        settled = written_here or all(map(is_settled, identity))
        return cls(place, types, about, identity, settled=settled)

    def load(self) -> NamedColumns | None:
        """Return what was kept; None where nothing was, or the files have changed since."""
        try:
            if self.place is None or not self.place.is_file():
                return None
            content = memoryview(read_regular(self.place))
            checksum = int.from_bytes(content[4:_HEAD], "big")
            if content[:4] != _MAGIC or zlib.crc32(content[_HEAD:]) != checksum:
                return None
            saved = _DECODER.decode(content[_HEAD:])
            if (saved.identity, saved.about) != (self._identity, self._about):
                return None
            columns = {
                name: np.frombuffer(saved.columns[name], dtype=f"<{kind}")
                for name, kind in self._types.items()
            }
            return NamedColumns(saved.names, columns)
        except (OSError, ValueError, KeyError):
            return None

    def keep(self, table: NamedColumns) -> None:
        """Keep the columns."""
        if self.place is None or not self._settled:
            return
        columns = {
            name: np.asarray(table.columns[name], dtype=f"<{kind}").ravel().view(np.uint8).data
            for name, kind in self._types.items()
        }
        content = bytearray(_HEAD)
        saved = _Saved(self._identity, self._about, table.names, columns)
        msgspec.msgpack.Encoder().encode_into(saved, content, _HEAD)
        checksum = zlib.crc32(memoryview(content)[_HEAD:])
        content[:_HEAD] = _MAGIC + checksum.to_bytes(4, "big")
        with suppress(OSError):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self.place, content)


class SideFile(Protocol[T]):
    """What is kept of a file, and how."""

    def load(self) -> T | None: ...
    def keep(self, what: T, /) -> None: ...


def kept_or_read(saved: SideFile[T], read: Callable[[], T | None]) -> T | None:
    """Return what a side file keeps; else what ``read`` returns, which is kept unless None."""
    known = saved.load()
    if known is None and (known := read()) is not None:
        saved.keep(known)
    return known


def key_columns(keys: KeyColumns) -> dict[str, NDArray[Any]]:
    """Return the columns of keys by name."""
    return {name: getattr(keys, name) for name in KEY_TYPES}


def key_names(keys: KeyColumns) -> tuple[Names, Names, Names]:
    """Return the names that columns of keys index, as ``keys_of`` takes them."""
    return keys.benchmarks, keys.agents, keys.tasks


def keys_of(table: NamedColumns) -> KeyColumns:
    """Return the keys of a table with the columns KEY_TYPES. Raises ValueError for unequal
    lengths."""
    benchmarks, agents, tasks, *_ = table.names
    benchmark, agent, task, attempt = (table.columns[name] for name in KEY_TYPES)
    check_lengths([benchmark, agent, task], len(attempt))
    return KeyColumns(benchmarks, agents, tasks, benchmark, agent, task, attempt)


def check_lengths(columns: Iterable[NDArray[Any]], length: int) -> None:
    """Raise ValueError unless all columns have this length (their last axis)."""
    if {column.shape[-1] for column in columns} != {length}:
        raise ValueError("columns of unequal length")
