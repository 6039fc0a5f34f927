"""Labels and official rewards as columns; mappings over those of a run's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.model import Annotation, Labels
from trajudge.eval.data.index.columns import UNKNOWN, VERDICTS
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.data.index.opened_file import OpenedFile
from trajudge.eval.stats.interval import Floats, Ints
from trajudge.trajectories.model import TrajectoryKey, compacted

V = TypeVar("V")

Rewards = Mapping[TrajectoryKey, float | None]


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Labels of distinct trajectories, (L,): ``verdicts`` are 1, 0 or UNKNOWN, (len(VERDICTS),
    L)."""

    keys: KeyColumns
    verdicts: NDArray[np.int8]

    @classmethod
    def of(cls, labels: Labels) -> LabelColumns:
        """Turn labels into columns; those of files have them."""
        if isinstance(labels, RunLabels):
            return labels.columns
        codes = np.array(
            [[_code(getattr(a, name)) for name in VERDICTS] for a in labels.values()],
            dtype=np.int8,
        )
        return cls(KeyColumns.of(labels), codes.reshape(-1, len(VERDICTS)).T)


@dataclass(frozen=True, eq=False)
class RewardColumns:
    """Official rewards of distinct trajectories, (R,), nan where unknown."""

    keys: KeyColumns
    reward: Floats

    @classmethod
    def of(cls, rewards: Rewards) -> RewardColumns:
        """Turn rewards into columns; those of files have them."""
        if isinstance(rewards, RunRewards):
            return rewards.columns
        values = [np.nan if reward is None else reward for reward in rewards.values()]
        return cls(KeyColumns.of(rewards), np.array(values, dtype=float))


def _code(value: bool | None) -> int:
    return UNKNOWN if value is None else int(value)


class _ByKey(Mapping[TrajectoryKey, V]):
    """Values of distinct trajectories, looked up by keys that are made when the first is."""

    def __init__(self, keys: KeyColumns) -> None:
        self._keys = keys

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[TrajectoryKey]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._keys)

    @cached_property
    def _places(self) -> dict[TrajectoryKey, int]:
        return {compacted(key): place for place, key in enumerate(self._keys)}


class RunLabels(_ByKey[Annotation]):
    """The labels of a file, one a trajectory; a record is decoded when it is asked for.

    ``offset`` and ``length``, (L,), are those of their lines.
    """

    def __init__(self, columns: LabelColumns, file: OpenedFile, offset: Ints, length: Ints) -> None:
        super().__init__(columns.keys)
        self.columns = columns
        self._file = file
        self._offset, self._length = offset, length

    def __getitem__(self, key: TrajectoryKey) -> Annotation:
        place = self._places[key]
        line = int(self._offset[place]), int(self._length[place])
        label = self._file.record(Annotation, *line)
        compacted(label.key)
        return compacted(label)


class RunRewards(_ByKey[float | None]):
    """The official rewards of a file, one a trajectory."""

    def __init__(self, columns: RewardColumns) -> None:
        super().__init__(columns.keys)
        self.columns = columns

    def __getitem__(self, key: TrajectoryKey) -> float | None:
        reward = float(self.columns.reward[self._places[key]])
        return None if np.isnan(reward) else reward
