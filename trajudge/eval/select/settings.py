"""The settings of ``trajudge select``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from trajudge.eval.select.measures.under_attack import Threat
from trajudge.eval.settings import LabelConfig, TaskId
from trajudge.trajectories.model import Seed
from trajudge.util.settings import Settings


class PlanConfig(Settings):
    """What a plan is made from: the target, the candidates and their prices (US dollars).

    None leaves a field to the plan's default. ``panel`` and ``cascade`` are ``A,B`` each,
    ``thresholds`` are ``JUDGE=T,T`` each, ``judgment_price`` ``[JUDGE=]DOLLARS`` each; ``judge``
    names the judges that are tried, empty: all.
    """

    target_precision: float | None = None
    max_false_positives: float | None = None
    confidence: float | None = None
    correction: Literal["fixed-sequence", "max-t"] | None = None
    every_benchmark: bool = False
    split: Literal["dev", "test", "all"] | None = None
    seed: Seed | None = None
    margin: float | None = None
    judge: tuple[str, ...] = ()
    ensembles_only: bool = False
    panel: tuple[str, ...] = ()
    cascade: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()
    rollout_price: float | None = None
    training_price: float | None = None
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
