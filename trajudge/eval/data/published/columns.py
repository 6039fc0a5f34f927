"""The columns of a folder of published judgments in a side file (``saved_tables``).

It counts as long as the files are those that were read, by their names, sizes, times of change and
status-change times (``eval.data.published.index`` says why these): a digest of them all.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.eval.data.index.cache_place import place_in_cache
from trajudge.eval.data.index.columns import JudgmentColumns
from trajudge.eval.data.index.keys import first_of_each
from trajudge.eval.data.index.labels import RewardColumns, RunRewards
from trajudge.eval.data.index.saved_columns import ABOUT, TYPES, columns_from, table_of
from trajudge.eval.data.index.saved_tables import NamedColumns, SavedTable, check_lengths
from trajudge.eval.data.published.listing import JudgeFolder
from trajudge.trajectories.model import TrajectoryKey

NAME = ".published.msgpack"
_SAW = ("saw_tree", "saw_screenshot")
_TYPES = TYPES | {"rewarded": "i8", "reward": "f8"} | dict.fromkeys(_SAW, "i1")

Identity = tuple[int, int, int]
"""Size, nanoseconds of the change and of the status change."""


class PublishedFacts(NamedTuple):
    """What the files tell beside the judgments: the official rewards of their trajectories, whether
    a judge saw the tree and the screenshot, where that is told, and the model of a judge."""

    rewards: Mapping[TrajectoryKey, float | None]
    representations: dict[str, tuple[bool, bool]]
    models: dict[str, str]


class SavedPublished:
    """The side file of the judgments below ``root``, of the files in ``folders``."""

    def __init__(self, root: Path, folders: Sequence[JudgeFolder]) -> None:
        self._place = place_in_cache(root, NAME)
        self._folders = folders
        self._known = ""

    def load(self) -> tuple[JudgmentColumns, PublishedFacts] | None:
        """Return what was kept; None where nothing was, or the files have changed since."""
        if self._place is None or not self._place.is_file():
            return None
        try:
            self._known = self._digest(
                identity_of(os.stat(f"{folder.path}/{name}"))  # noqa: PTH116 - many times quicker
                for folder in self._folders
                for name in folder.files.values()
            )
            table = self._table(self._known).load()
            return None if table is None else _columns(table)
        except (OSError, ValueError, IndexError):
            return None

    def is_of(self, identities: Iterable[Identity]) -> bool:
        """Tell whether what was loaded is of files that are these, in the order of the folders."""
        return self._digest(identities) == self._known

    def keep(
        self, judgments: JudgmentColumns, facts: PublishedFacts, identities: Iterable[Identity]
    ) -> None:
        """Keep the columns of files that were these when they were read, in the order of the
        folders."""
        names, kept = table_of(judgments)
        kept["rewarded"] = first_of_each(judgments.keys)
        kept["reward"] = RewardColumns.of(facts.rewards).reward
        shown, models = facts.representations, facts.models
        for side, name in enumerate(_SAW):
            kept[name] = np.array([saw[side] for saw in shown.values()], dtype=np.int8)
        names = (*names, tuple(shown), tuple(models), tuple(models.values()))
        with suppress(ValueError, OverflowError):  # such as a name that is no text
            self._table(self._digest(identities)).keep(NamedColumns(names, kept))

    def _table(self, digest: str) -> SavedTable:
        return SavedTable(self._place, _TYPES, (*ABOUT, digest))

    def _digest(self, identities: Iterable[Identity]) -> str:
        paths = "\0".join(
            "\0".join([folder.benchmark, folder.agent, folder.judge, *folder.files.values()])
            for folder in self._folders
        )
        digest = blake2b(os.fsencode(paths), digest_size=32)
        numbers = array("q")
        for identity in identities:
            numbers.extend(identity)
        digest.update(numbers)
        return digest.hexdigest()


def identity_of(status: os.stat_result) -> Identity:
    """Return what a published judgment's file is known by."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _columns(table: NamedColumns) -> tuple[JudgmentColumns, PublishedFacts]:
    """Make the columns. Raises ValueError, IndexError for what does not belong together."""
    judgments = columns_from(table)
    *_, shown, judges, models = table.names
    rows, reward, *saw = (table.columns[name] for name in _TYPES if name not in TYPES)
    check_lengths([rows], len(reward))
    check_lengths(saw, len(shown))
    seen = zip(*(column.astype(bool).tolist() for column in saw), strict=True)
    facts = PublishedFacts(
        RunRewards(RewardColumns(judgments.keys.at(rows), reward)),
        dict(zip(shown, seen, strict=True)),
        dict(zip(judges, models, strict=True)),
    )
    return judgments, facts
