"""What a reward is made of: judge, model, calibration, decision, shaping."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.rewards.shaping import RewardShaping
from trajudge.rewards.watch.settings import WatchConfig
from trajudge.trajectories.model import Record


class RewardConfig(Record):
    """``calibration`` is a file of ``trajudge score --calibration-out``, ``decision`` a folder of
    ``trajudge select``, whose threshold then holds. ``unqualified`` takes the nearest candidate of
    a decision in which no judge qualified. ``assume_same_judge``: what a decision does not record
    of its judge is as it is here. ``deadline`` in seconds (None: none). ``watch`` says when rewards
    stop because they cannot be trusted any more."""

    judge: JudgeConfig = JudgeConfig()
    calls: CallConfig = CallConfig()
    shaping: RewardShaping = RewardShaping()
    calibration: Path | None = None
    decision: Path | None = None
    unqualified: bool = False
    assume_same_judge: bool = False
    deadline: float | None = Field(default=None, gt=0)
    watch: WatchConfig = WatchConfig()
