"""Labels, official rewards and the keys of trajectories: their columns in side files
(``saved_tables``)."""

from __future__ import annotations

from pathlib import Path

from trajudge.eval.data.index.columns import VERDICTS
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.data.index.labels import (
    LabelColumns,
    LabelLines,
    RewardColumns,
    RunLabels,
    RunRewards,
)
from trajudge.eval.data.index.opened_file import OpenedFile
from trajudge.eval.data.index.saved_tables import (
    KEY_TYPES,
    NamedColumns,
    SavedTable,
    check_lengths,
    key_columns,
    key_names,
    keys_of,
)
from trajudge.trajectories.util.errors import UserError

_LINES = {"offset": "i8", "length": "i8", "split": "i1", "as_written": "i1"}
_REWARD = {"reward": "f8"}


class SavedLabels:
    """The labels of a file."""

    def __init__(self, path: Path) -> None:
        types = KEY_TYPES | {"verdicts": "i1", "inclusion": "f8"} | _LINES
        self._path = path
        self._table = SavedTable.of_files(".labels.msgpack", [path], types, VERDICTS)

    def load(self) -> RunLabels | None:
        """Return what was kept; None where nothing was, or the file has changed since."""
        table = self._table.load()
        if table is None:
            return None
        try:
            file, keys = OpenedFile(self._path), keys_of(table)
            verdicts = table.columns["verdicts"].reshape(len(VERDICTS), -1)
            lines = [table.columns[name] for name in _LINES]
            inclusion = table.columns["inclusion"]
            check_lengths([verdicts, inclusion, *lines], len(keys))
        except (ValueError, UserError):
            return None
        offset, length, split, written = lines
        lines_of = LabelLines(offset, length, split, written.astype(bool))
        are_all = table.names[-1] == ()
        return RunLabels(LabelColumns(keys, verdicts, inclusion), file, lines_of, are_all=are_all)

    def keep(self, labels: RunLabels) -> None:
        """Keep them."""
        keys = labels.columns.keys
        columns = {**key_columns(keys), "verdicts": labels.columns.verdicts}
        columns["inclusion"] = labels.columns.inclusion
        columns |= labels.lines._asdict()
        others = () if labels.are_all else ("others",)
        self._table.keep(NamedColumns((*key_names(keys), others), columns))


class SavedRewards:
    """The official rewards of a run's file."""

    def __init__(self, path: Path) -> None:
        self._table = SavedTable.of_files(".rewards.msgpack", [path], KEY_TYPES | _REWARD)

    def load(self) -> RunRewards | None:
        """Return what was kept; None where nothing was, or the file has changed since."""
        table = self._table.load()
        try:
            if table is None:
                return None
            keys, reward = keys_of(table), table.columns["reward"]
            check_lengths([reward], len(keys))
        except ValueError:
            return None
        return RunRewards(RewardColumns(keys, reward))

    def keep(self, rewards: RunRewards) -> None:
        """Keep them."""
        keys = rewards.columns.keys
        columns = {**key_columns(keys), "reward": rewards.columns.reward}
        self._table.keep(NamedColumns(key_names(keys), columns))


class SavedKeys:
    """The keys of the trajectories in a file, in their order, with repeats."""

    def __init__(self, path: Path) -> None:
        self._table = SavedTable.of_files(".keys.msgpack", [path], KEY_TYPES)

    def load(self) -> KeyColumns | None:
        """Return what was kept; None where nothing was, or the file has changed since."""
        table = self._table.load()
        try:
            return None if table is None else keys_of(table)
        except ValueError:
            return None

    def keep(self, keys: KeyColumns) -> None:
        """Keep them."""
        self._table.keep(NamedColumns(key_names(keys), key_columns(keys)))
