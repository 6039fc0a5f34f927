"""How judges find faults in the process of a run."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from trajudge.eval.scoring.records.names import Limits
from trajudge.trajectories.model import Record

FaultRate = Literal[
    "precision",
    "recall",
    "f1",
    "false_alarms",
    "silent_recall",
    "loud_recall",
    "step_exact",
    "step_within_one",
    "step_found",
]
FAULT_RATES: tuple[FaultRate, ...] = get_args(FaultRate)


class FaultScore(Record):
    """How one judge finds runs whose process is faulty, and where: a fault is the positive.

    Of ``n`` runs ``faulty`` are so; ``false_alarms`` is the share of the sound ones that are called
    faulty. A ``silent`` fault left the outcome right, a ``loud`` one did not. Of the faults that
    the judge found, ``named`` come with a step: ``step_exact`` and ``step_within_one`` are shares
    of these, ``step_found`` is the share of all faults that were found at their exact step.
    ``type_f1`` is the mean over the kinds of faults of the F1 of naming each, among faulty runs.
    A failed judgment finds nothing. Rates are fractions with 95 % limits over tasks in
    ``intervals``, None where undefined.
    """

    judge: str
    n: int
    faulty: int
    silent: int
    loud: int
    named: int
    precision: float | None
    recall: float | None
    f1: float | None
    false_alarms: float | None
    silent_recall: float | None
    loud_recall: float | None
    step_exact: float | None
    step_within_one: float | None
    step_found: float | None
    type_f1: float | None
    intervals: dict[FaultRate, Limits] = Field(default_factory=dict)
