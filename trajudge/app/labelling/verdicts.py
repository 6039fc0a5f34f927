"""What judges and the rule said of the trajectories of a queue, for pages that are not blind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.labelling.frame import RULE, Frame, open_frame, vote_share
from trajudge.trajectories.model import TrajectoryKey


class ShownVerdict(NamedTuple):
    """An evaluator's verdict on a trajectory, None where it gave none, and its score."""

    evaluator: str
    success: bool | None
    score: float | None


class FrameVerdicts:
    """The verdicts of a queue's frame, read when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: tuple[Frame, Mapping[TrajectoryKey, int]] | None = None

    def _frame(self) -> tuple[Frame, Mapping[TrajectoryKey, int]]:
        if self._read is None:
            frame = open_frame(self._folder)
            self._read = frame, {key: row for row, key in enumerate(frame.keys)}
        return self._read

    def of(self, key: TrajectoryKey) -> list[ShownVerdict]:
        """List what every evaluator said; empty for a trajectory that is not in the frame."""
        frame, rows = self._frame()
        if key not in rows:
            return []
        row = rows[key]
        votes, scores = frame.votes[row], frame.scores[row]
        return [
            ShownVerdict(
                name,
                None if np.isnan(votes[place]) else bool(votes[place]),
                None if name == RULE or np.isnan(scores[place]) else float(scores[place]),
            )
            for place, name in enumerate(frame.evaluators)
        ]

    def rule(self, key: TrajectoryKey) -> bool | None:
        """Return the rule's verdict, None where there is none."""
        frame, rows = self._frame()
        value = frame.rule[rows[key]] if key in rows else np.nan
        return None if np.isnan(value) else bool(value)

    def judges_share(self, key: TrajectoryKey) -> float | None:
        """Return the share of success among the judges' votes, with one vote of one half added."""
        frame, rows = self._frame()
        if key not in rows:
            return None
        return float(vote_share(frame.verdicts[rows[key]][None])[0])

    def learned(self, labels: Labels) -> Mapping[TrajectoryKey, float]:
        """Predict the success of every trajectory of the frame by a regression on labels; empty
        where there are too few."""
        frame, rows = self._frame()
        chances = frame.learned_probability(labels)
        return {} if chances is None else {key: float(chances[row]) for key, row in rows.items()}
