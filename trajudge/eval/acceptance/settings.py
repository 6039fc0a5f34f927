"""The settings of ``trajudge accept`` and ``trajudge run recertify``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from trajudge.eval.acceptance.training.settings import TrainingConfig
from trajudge.trajectories.model import Record, Seed
from trajudge.util.settings import Settings


class AcceptConfig(Settings):
    """What accepts (a ``decision``, or a ``judge`` at a ``threshold``), what it is applied to, and
    how the accepted trajectories are written.

    ``page`` is the accessibility tree in the conversations, ``system`` a file with another text of
    their system turn; ``agents``: whether runs of agents that the decision was not made on are
    rejected (same) or taken (any; None: taken, and a sample asked for). Runs on the tasks that the
    file ``held_out`` lists are rejected. ``training`` is the layout of training data that is
    written beside the conversations.
    """

    decision: Path | None = None
    judge: str | None = None
    threshold: float | None = None
    run: tuple[Path, ...] = ()
    judgments: Path | None = None
    data: str | None = None
    out: Path = Path("accepted")
    dataset: Path | None = None
    page: Literal["pruned", "full", "none"] = "pruned"
    without_observations: bool = False
    system: Path | None = None
    any_benchmark: bool = False
    agents: Literal["same", "any"] | None = None
    assume_same_judge: bool = False
    held_out: Path | None = None
    training: TrainingConfig | None = None


class SampleConfig(Record):
    """Which accepted runs to draw a sample of, to be labelled, for which decision.

    ``agent`` names the agents (empty: those that the decision does not know), ``size`` the number
    of labels (None: as many as decide with a power of 0.8).
    """

    decision: Path
    accepted: Path
    out: Path
    agent: tuple[str, ...] = ()
    size: int | None = Field(default=None, ge=1)
    seed: Seed = 0
