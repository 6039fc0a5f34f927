"""An expert's label of a trajectory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field

from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of, listed

LabelsBy = Literal["primary", "majority", "unanimous", "any"]
"""How several annotators' opinions become one label."""

LABELS_BY: tuple[LabelsBy, ...] = get_args(LabelsBy)
VERDICT_FIELDS = ("success", "side_effect", "repetition", "process")


class Role(StrEnum):
    """The primary opinion is the label, secondary ones only measure agreement. An adjudicated
    one replaces the primary as the label, and is not part of the agreement."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    ADJUDICATED = "adjudicated"


class EvidenceMark(Record):
    """The evidence of a label: a step, a part of it, and a note.

    ``box`` is left, top, width and height in the screenshot's pixels.
    """

    step: int = Field(ge=0)
    kind: Literal["screenshot", "axtree", "action", "answer"]
    note: str = ""
    box: tuple[float, float, float, float] | None = None


class Label(Record):
    """One expert's label of one trajectory (AgentRewardBench section 3.2). None: unsure.

    ``optimality`` is from 1 (complete failure) to 4 (completely optimal). ``split`` is the
    benchmark's split, if it has one. ``process``: the process of the run was sound, whatever its
    outcome; ``process_score`` is the same as a share; ``failure_step`` is the step of the first
    fault, from 0 as ``Step.index``, and ``failure_type`` its kind in the benchmark's terms.

    The labelling application adds ``unsure_why``, the reason for each unsure answer, ``seconds``,
    the time for which the page was visible, ``confidence`` from 1 to 3, and ``blind``: no verdict
    was visible; otherwise ``seen`` names the visible ones.

    ``inclusion_probability`` is the probability with which the trajectory was drawn for labelling
    from the frame of its file, None if it was equal for all or nothing was drawn; ``stratum`` is
    the part of the frame from which it was drawn.
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
    process: bool | None = None
    process_score: float | None = Field(None, ge=0, le=1)
    failure_step: int | None = Field(None, ge=0)
    failure_type: str | None = None
    unsure_why: dict[str, str] = Field(default_factory=dict)
    evidence: tuple[EvidenceMark, ...] = ()
    comment: str | None = None
    seconds: float | None = Field(None, ge=0)
    confidence: int | None = Field(None, ge=1, le=3)
    guideline_version: str | None = None
    blind: bool | None = None
    seen: tuple[str, ...] = ()
    inclusion_probability: float | None = Field(None, gt=0, le=1)
    stratum: str | None = None


class SampleFrame(Record):
    """The frame from which the labels of a file were drawn: ``size`` trajectories, the sampling
    ``strategy``, and the ``filter`` on the runs, "" for all trajectories."""

    size: int = Field(ge=1)
    strategy: str = "random"
    filter: str = ""


Labels = Mapping[TrajectoryKey, Label]


class LabelConflicts(NamedTuple):
    """Contradictions between annotators: ``differing`` of the ``several`` trajectories with more
    than one annotator have different verdicts and no adjudicated label; for ``undeclared`` ones,
    by ``annotators``, the roles do not determine the label."""

    several: int
    differing: int
    undeclared: int
    annotators: tuple[str, ...]


def primary_labels(annotations: Iterable[Label], by: LabelsBy | None = None) -> Labels:
    """Return the label of every trajectory, in the given order.

    Of several annotations by one annotator the last counts. ``by`` combines several annotators'
    opinions: ``primary``, the adjudicated annotation, or else the one with the role primary, of
    several that of the annotator with most such labels (ties by name); ``majority``, each verdict
    of more than half of those who decided; ``unanimous``, each verdict of all; ``any``, true if any
    of them is. Otherwise a verdict is None (unsure). Raises UserError without ``by`` if two primary
    annotators of a trajectory differ and none was adjudicated.
    """
    opinions = opinions_by_trajectory(annotations)
    if by is None and (conflicts := label_conflicts(opinions)).undeclared:
        raise UserError(
            f"the annotators {listed(conflicts.annotators, 4)} differ on {conflicts.undeclared} of "
            f"{count_of(conflicts.several, 'trajectory')} that more than one of them labelled: say "
            f"which label counts with --labels-by {'|'.join(LABELS_BY)}"
        )
    if by is None or by == "primary":
        counts = Counter(
            each.annotator
            for several in opinions.values()
            for each in several
            if each.role is Role.PRIMARY
        )
        chosen = {key: _primary(several, counts) for key, several in opinions.items()}
        return {key: label for key, label in chosen.items() if label is not None}
    return {key: _voted(several, by) for key, several in opinions.items()}


def opinions_by_trajectory(
    annotations: Iterable[Label],
) -> dict[TrajectoryKey, list[Label]]:
    """Return every trajectory's annotations, one per annotator and role: the last one, at the
    position of the first."""
    latest: dict[TrajectoryKey, dict[tuple[str, Role], Label]] = {}
    for annotation in annotations:
        latest.setdefault(annotation.key, {})[annotation.annotator, annotation.role] = annotation
    return {key: [*several.values()] for key, several in latest.items()}


def label_conflicts(opinions: Mapping[TrajectoryKey, Sequence[Label]]) -> LabelConflicts:
    """Count the differences between opinions on each trajectory; an adjudicated one resolves
    them."""
    several = differing = undeclared = 0
    names: dict[str, None] = {}
    for of_one in opinions.values():
        if len(of_one) < 2:
            continue
        people = [each for each in of_one if each.role is not Role.ADJUDICATED]
        several += len(people) > 1
        if len(people) < len(of_one) or len({verdicts_of(each) for each in people}) < 2:
            continue
        differing += 1
        first = [each for each in people if each.role is Role.PRIMARY]
        if len({verdicts_of(each) for each in first}) > 1:
            undeclared += 1
            names |= dict.fromkeys(each.annotator for each in first)
    return LabelConflicts(several, differing, undeclared, tuple(sorted(names)))


def corrected_trajectories(annotations: Iterable[Label]) -> int:
    """Count the trajectories for which one annotator, in one role, gave different verdicts."""
    by_person: dict[tuple[TrajectoryKey, str, Role], set[tuple[bool | None, ...]]] = {}
    for each in annotations:
        by_person.setdefault((each.key, each.annotator, each.role), set()).add(verdicts_of(each))
    return len({key for (key, _, _), verdicts in by_person.items() if len(verdicts) > 1})


def verdicts_of(annotation: Label) -> tuple[bool | None, ...]:
    """Return an annotation's success, side effect, repetition and process."""
    return tuple(getattr(annotation, name) for name in VERDICT_FIELDS)


def _primary(opinions: Sequence[Label], counts: Mapping[str, int]) -> Label | None:
    """Return the adjudicated opinion, or else the primary one of the annotator with most labels
    (``counts``), whatever their order; None without either."""
    for role in (Role.ADJUDICATED, Role.PRIMARY):
        of_role = [each for each in opinions if each.role is role]
        if of_role:
            return min(of_role, key=lambda each: (-counts.get(each.annotator, 0), each.annotator))
    return None


def _voted(opinions: Sequence[Label], by: LabelsBy) -> Label:
    """Combine annotations by vote; adjudicated ones do not count."""
    people = [each for each in opinions if each.role is not Role.ADJUDICATED] or [*opinions]
    if len(people) == 1:
        return people[0].model_copy(update={"role": Role.PRIMARY})
    voted: dict[str, Any] = {
        name: _vote([getattr(each, name) for each in people], by)
        for name in (*VERDICT_FIELDS, "optimality", "failure_step", "failure_type")
    }
    names = {"annotator": f"{by} of {len(people)}", "role": Role.PRIMARY}
    return people[0].model_copy(update=voted | names)


def _vote(values: Sequence[Any], by: LabelsBy) -> Any:
    decided = [value for value in values if value is not None]
    if by == "any" and any(value is True for value in decided):
        return True
    if by == "unanimous":
        return values[0] if len(set(values)) == 1 else None
    value, most = (Counter(decided).most_common(1) or [(None, 0)])[0]
    return value if 2 * most > len(decided) else None
