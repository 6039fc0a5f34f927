"""The settings of ``trajudge label build``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from trajudge.annotations.labelling.records import QUESTIONS, Question
from trajudge.eval.labelling.designs import Strategy
from trajudge.eval.settings import LabelConfig
from trajudge.trajectories.model import Seed


class BuildConfig(LabelConfig):
    """What to draw a queue from, how, and what it asks.

    ``candidates`` is the frozen plan of the strategy ``cascade``. ``filter`` keeps the trajectories
    of the frame that it keeps in one of the ``runs``. ``budget`` is the number of trajectories, of
    which the share ``double`` is labelled twice. ``annotations`` are labels that the design may
    learn from; ``gold`` those of hidden checks, of which ``gold_share`` times the budget are added.
    """

    runs: tuple[Path, ...] = ()
    judgments: Path | None = None
    filter: str = ""
    data: tuple[str, ...] = ()
    strategy: Strategy = "random"
    candidates: Path | None = None
    budget: int = Field(default=100, ge=1)
    double: float = Field(default=0.2, ge=0, le=1)
    seed: Seed = 0
    gold: str | None = None
    gold_share: float = Field(default=0.05, gt=0, le=1)
    questions: tuple[Question, ...] = Field(default=QUESTIONS, min_length=1)
    informed: bool = False
    guidelines: Path | None = None
    out: Path = Path("queue")
    dry_run: bool = False
