"""The columns of a large run's judgments in a side file (``saved_tables``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trajudge.eval.data.index.call_ledger import PAYMENTS
from trajudge.eval.data.index.columns import VERDICTS, CallColumns, JudgmentColumns
from trajudge.eval.data.index.saved_tables import (
    KEY_TYPES,
    NamedColumns,
    SavedTable,
    check_lengths,
    key_columns,
    key_names,
    keys_of,
)
from trajudge.judges.model import USAGE_FIELDS

NAME = ".columns.msgpack"
_JUDGMENTS = {
    **{"judge": "i4", "sample": "i4", "status": "i1", "rung": "i1", "verdicts": "i1"},
    **{"score": "f8", "second_asked": "f8", "offset": "i8", "length": "i8"},
}
_CALLS = {
    **{"judgment": "i8", "stage": "i4", "cost": "f8", "seconds": "f8", "usage": "i8"},
    **{"request": "i8", "cached": "b1"},
}
_OF_CALLS = "call."
TYPES = KEY_TYPES | _JUDGMENTS | {_OF_CALLS + name: kind for name, kind in _CALLS.items()}

ABOUT = (*VERDICTS, *USAGE_FIELDS)


class SavedColumns:
    """The side file of a run's judgments and their ledger, as these are when it is made.
    ``written_here`` as of ``SavedTable``."""

    def __init__(self, judgments: Path, ledger: Path, *, written_here: bool = False) -> None:
        files = (judgments, ledger, ledger.with_name(PAYMENTS))
        self._table = SavedTable.of_files(NAME, files, TYPES, ABOUT, written_here=written_here)

    @property
    def is_kept(self) -> bool:
        """Whether there is a side file."""
        return self._table.place is not None and self._table.place.is_file()

    def load(self) -> JudgmentColumns | None:
        """Return the columns of all lines in their order, with what the ledger tells of their
        calls; None where they were not kept or the files have changed since. Their calls have no
        ``place``."""
        table = self._table.load()
        try:
            return None if table is None else columns_from(table)
        except ValueError:
            return None

    def keep(self, columns: JudgmentColumns) -> None:
        """Keep the columns of all lines, with what the ledger tells of their calls."""
        self._table.keep(table_of(columns))


def table_of(columns: JudgmentColumns) -> NamedColumns:
    """Return the columns by name, those in TYPES, and the names that they index."""
    keys, calls = columns.keys, columns.calls
    kept = key_columns(keys) | {name: getattr(columns, name) for name in _JUDGMENTS}
    kept |= {_OF_CALLS + name: getattr(calls, name) for name in _CALLS}
    return NamedColumns((*key_names(keys), columns.judges, calls.stages), kept)


def columns_from(table: NamedColumns) -> JudgmentColumns:
    """Make the columns of a table as ``table_of`` returns it. Their calls have no ``place``. Raises
    ValueError for unequal lengths."""
    _, _, _, judges, stages, *_ = table.names
    judgment: dict[str, Any] = {name: table.columns[name] for name in _JUDGMENTS}
    call: dict[str, Any] = {name: table.columns[_OF_CALLS + name] for name in _CALLS}
    judgment["verdicts"] = judgment["verdicts"].reshape(len(VERDICTS), -1)
    call["usage"] = call["usage"].reshape(len(USAGE_FIELDS), -1)
    keys, called = keys_of(table), len(call["judgment"])
    check_lengths(judgment.values(), len(keys))
    check_lengths(call.values(), called)
    calls = CallColumns(stages, place=np.zeros(called, dtype=np.int64), **call)
    return JudgmentColumns(keys, judges, calls=calls, **judgment)
