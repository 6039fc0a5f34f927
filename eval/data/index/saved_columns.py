"""The columns of a large run's judgments in a side file, so that the run is read once.

The file counts as long as the judgments and their ledger are those that were read
(``cache_place``); nothing that goes wrong with it changes what is read. Format: four bytes of
magic, the CRC-32 of what follows, MessagePack.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trajudge.eval.data.index.cache_place import (
    FileIdentity,
    identity_of,
    is_settled,
    place_in_cache,
)
from trajudge.eval.data.index.columns import VERDICTS, CallColumns, JudgmentColumns
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.judges.model import USAGE_FIELDS
from trajudge.trajectories.util.atomic import write_bytes

NAME = ".columns.msgpack"
# A smaller file is read as quickly as its columns are looked up. Bytes.
LARGE = 2**22
_MAGIC = b"TJC1"
_KEYS = {"benchmark": "i4", "agent": "i4", "task": "i4", "attempt": "i8"}
_JUDGMENTS = {
    **{"judge": "i4", "sample": "i4", "status": "i1", "rung": "i1", "verdicts": "i1"},
    **{"score": "f8", "second_asked": "f8", "offset": "i8", "length": "i8"},
}
_CALLS = {"judgment": "i8", "stage": "i4", "cost": "f8", "seconds": "f8", "usage": "i8"}


class _Saved(msgspec.Struct, array_like=True):
    """``names`` are those of benchmarks, agents, tasks, judges and stages; ``shape`` counts
    judgments and calls; the bytes of columns by name."""

    identity: tuple[FileIdentity, FileIdentity]
    verdicts: tuple[str, ...]
    usage: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    shape: tuple[int, int]
    keys: dict[str, memoryview]
    judgments: dict[str, memoryview]
    calls: dict[str, memoryview]


_DECODER = msgspec.msgpack.Decoder(_Saved)


class SavedColumns:
    """The side file of a run's judgments and their ledger, as these are when it is made: what is
    read of them afterwards is kept for files like these. ``written_here``: by this process, which
    no other writes beside; else files that have changed just now are not kept."""

    def __init__(self, judgments: Path, ledger: Path, *, written_here: bool = False) -> None:
        self._place = None
        self._identity = identity_of(judgments), identity_of(ledger)
        if self._identity[0][0] >= LARGE:
            self._place = place_in_cache(judgments, NAME)
        self._settled = written_here or all(map(is_settled, self._identity))

    def load(self) -> JudgmentColumns | None:
        """Return the columns of all lines in their order, with the seconds of their calls; None
        where they were not kept or the files have changed since. Their calls have no ``place``."""
        try:
            if self._place is None or not self._place.is_file():
                return None
            content = memoryview(self._place.read_bytes())
            checksum = int.from_bytes(content[4:8], "big")
            if content[:4] != _MAGIC or zlib.crc32(content[8:]) != checksum:
                return None
            saved = _DECODER.decode(content[8:])
            if saved.identity != self._identity:
                return None
            if (saved.verdicts, saved.usage) != (VERDICTS, USAGE_FIELDS):
                return None
            return _columns(saved)
        except (OSError, ValueError, KeyError):
            return None

    def keep(self, columns: JudgmentColumns) -> None:
        """Keep the columns of all lines, with the seconds of their calls."""
        if self._place is None or not self._settled:
            return
        body = msgspec.msgpack.encode(_saved(self._identity, columns))
        with suppress(OSError):
            self._place.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self._place, _MAGIC + zlib.crc32(body).to_bytes(4, "big") + body)


def _saved(identity: tuple[FileIdentity, FileIdentity], columns: JudgmentColumns) -> _Saved:
    keys, calls = columns.keys, columns.calls
    return _Saved(
        identity,
        VERDICTS,
        USAGE_FIELDS,
        (keys.benchmarks, keys.agents, keys.tasks, columns.judges, calls.stages),
        (len(columns), len(calls)),
        _bytes_of(keys, _KEYS),
        _bytes_of(columns, _JUDGMENTS),
        _bytes_of(calls, _CALLS),
    )


def _bytes_of(columns: object, types: Mapping[str, str]) -> dict[str, memoryview]:
    return {
        name: np.asarray(getattr(columns, name), dtype=f"<{kind}").ravel().view(np.uint8).data
        for name, kind in types.items()
    }


def _columns(saved: _Saved) -> JudgmentColumns:
    """Make the columns. Raises ValueError for unequal lengths, KeyError for one that is missing."""
    count, called = saved.shape
    benchmarks, agents, tasks, judges, stages = saved.names
    key = _arrays(saved.keys, _KEYS)
    judgment = _arrays(saved.judgments, _JUDGMENTS)
    call = _arrays(saved.calls, _CALLS)
    judgment["verdicts"] = judgment["verdicts"].reshape(len(VERDICTS), -1)
    call["usage"] = call["usage"].reshape(len(USAGE_FIELDS), -1)
    lengths = {column.shape[-1] for column in (*key.values(), *judgment.values())}
    if lengths != {count} or {column.shape[-1] for column in call.values()} != {called}:
        raise ValueError("columns of unequal length")
    calls = CallColumns(stages, place=np.zeros(called, dtype=np.int64), **call)
    return JudgmentColumns(
        KeyColumns(benchmarks, agents, tasks, **key), judges, calls=calls, **judgment
    )


def _arrays(content: Mapping[str, memoryview], types: Mapping[str, str]) -> dict[str, Any]:
    return {name: np.frombuffer(content[name], dtype=f"<{kind}") for name, kind in types.items()}
