"""What an expert said of a trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from trajudge.trajectories.added import added
from trajudge.trajectories.model import Record, TrajectoryKey


class Role(StrEnum):
    """The first opinion on a trajectory is the label; later ones only measure agreement. One that
    was decided from several replaces the first as the label, and stays out of the agreement."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    ADJUDICATED = "adjudicated"


class EvidenceMark(Record):
    """Where an annotator saw the reason of a label: a step, what of it, and a note.

    ``box`` is left, top, width and height in the screenshot's pixels.
    """

    step: int = Field(ge=0)
    kind: Literal["screenshot", "axtree", "action", "answer"]
    note: str = ""
    box: tuple[float, float, float, float] | None = None


class Annotation(Record):
    """One expert's opinion of one trajectory (AgentRewardBench section 3.2). None: unsure.

    ``optimality`` goes from 1 (complete failure) to 4 (completely optimal). ``split`` is the
    benchmark's split, if it has one. ``process`` tells whether the process of the run was sound,
    whatever its outcome, and ``process_score`` the same as a share; ``failure_step`` is the step of
    the first fault, counted from 0 as ``Step.index``, and ``failure_type`` its kind in the
    benchmark's terms.

    The labelling application adds: ``unsure_why`` gives the reason for each question whose answer
    is unsure, ``seconds`` is the time that the page was visible, ``confidence`` goes from 1 to 3,
    and ``blind`` tells whether no verdict was visible; otherwise ``seen`` names the visible ones.
    """

    key: TrajectoryKey
    raw_task_id: str
    annotator: str
    role: Role = Role.PRIMARY
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = Field(default=None, ge=1, le=4)
    split: Literal["dev", "test"] | None = None
    process: bool | None = added(None)
    process_score: float | None = added(None, ge=0, le=1)
    failure_step: int | None = added(None, ge=0)
    failure_type: str | None = added(None)
    unsure_why: dict[str, str] = added(default_factory=dict)
    evidence: tuple[EvidenceMark, ...] = added(())
    comment: str | None = added(None)
    seconds: float | None = added(None, ge=0)
    confidence: int | None = added(None, ge=1, le=3)
    guideline_version: str | None = added(None)
    blind: bool | None = added(None)
    seen: tuple[str, ...] = added(())


Labels = Mapping[TrajectoryKey, Annotation]


def primary_labels(annotations: Iterable[Annotation]) -> Labels:
    """Return the label of every trajectory, in the order given: its first primary annotation, or
    the adjudicated one where there is one. A later annotation by the same annotator corrects the
    earlier one; one by somebody else is a second opinion, whatever its role."""
    labels: dict[TrajectoryKey, Annotation] = {}
    for annotation in annotations:
        if annotation.role is Role.ADJUDICATED or _counts(annotation, labels.get(annotation.key)):
            labels[annotation.key] = annotation
    return labels


def _counts(later: Annotation, earlier: Annotation | None) -> bool:
    if later.role is not Role.PRIMARY or earlier is None:
        return later.role is Role.PRIMARY
    return is_correction(later, earlier)


def is_correction(later: Annotation, earlier: Annotation) -> bool:
    """Tell whether an annotator's primary annotation takes the place of an earlier one."""
    return later.role is earlier.role is Role.PRIMARY and later.annotator == earlier.annotator
