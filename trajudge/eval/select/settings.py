"""The settings of ``trajudge select``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from trajudge.annotations import LabelConfig
from trajudge.eval.store.task_goals import TaskId
from trajudge.trajectories.model import Record, Seed

Correction = Literal["fixed-sequence", "max-t"]
Threat = Literal["agent", "page", "both"]
"""Who attacks."""


class PlanConfig(Record):
    """What a plan is made from: the target, the candidates and their prices (US dollars).

    ``panel`` and ``cascade`` are ``A,B`` each, ``thresholds`` are ``JUDGE=T,T`` each,
    ``judgment_price`` ``[JUDGE=]DOLLARS`` each; ``judge`` names the judges that are tried, empty:
    all.
    """

    target_precision: float | None = Field(default=None, gt=0, lt=1)
    max_false_positives: float | None = Field(default=None, gt=0, lt=1)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    correction: Correction = "fixed-sequence"
    every_benchmark: bool = False
    split: Literal["dev", "test", "all"] = "all"
    seed: Seed = 0
    margin: float = Field(default=0.1, gt=0, lt=1)
    judge: tuple[str, ...] = ()
    ensembles_only: bool = False
    panel: tuple[str, ...] = ()
    cascade: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()
    rollout_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    training_price: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    threat: Threat | None = None
    judgment_price: tuple[str, ...] = ()


class SelectConfig(LabelConfig):
    """Which judgments and labels are read, the plan, and what is written.

    ``candidates`` is a frozen plan that is used instead of ``plan``; ``out`` is by default named by
    the plan. ``robustness`` are files of ``trajudge robust``, for a plan with a threat.
    """

    runs: tuple[Path, ...] = ()
    judgments: Path | None = None
    task_id: TaskId = "recorded"
    out: Path | None = None
    candidates: Path | None = None
    robustness: tuple[Path, ...] = ()
    plan: PlanConfig = PlanConfig()
