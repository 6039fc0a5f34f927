"""Labels and official rewards as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.model import Labels
from trajudge.eval.data.index.columns import UNKNOWN, VERDICTS
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.stats.interval import Floats
from trajudge.trajectories.model import TrajectoryKey

Rewards = Mapping[TrajectoryKey, float | None]


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Labels of distinct trajectories, (L,): ``verdicts`` are 1, 0 or UNKNOWN, (len(VERDICTS),
    L)."""

    keys: KeyColumns
    verdicts: NDArray[np.int8]

    @classmethod
    def of(cls, labels: Labels) -> LabelColumns:
        """Turn labels into columns."""
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
        """Turn rewards into columns."""
        values = [np.nan if reward is None else reward for reward in rewards.values()]
        return cls(KeyColumns.of(rewards), np.array(values, dtype=float))


def _code(value: bool | None) -> int:
    return UNKNOWN if value is None else int(value)
