"""Trajectories that are worth a look: those that judges got wrong, with every verdict on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from trajudge.annotations.model import Label
from trajudge.eval.scoring.observations import Observations, answered, one_per_trajectory
from trajudge.eval.scoring.records import LabelName
from trajudge.eval.sources import Source, judgments_of
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey

Outcome = Literal["false positive", "false negative", "right", "no verdict", "unlabelled"]


class CaseVerdict(NamedTuple):
    """What one judge said of the trajectory; ``answer`` None where it gave none. ``outcome`` sets
    it beside the expert's label."""

    judge: str
    answer: bool | None
    outcome: Outcome
    status: str
    score: float | None
    reasoning: str


class ReportedCase(NamedTuple):
    """A trajectory with the expert's ``label`` (None: unsure or none), the official ``reward`` and
    the judges' verdicts, in the order of their names."""

    key: TrajectoryKey
    label: bool | None
    annotation: Label | None
    reward: float | None
    verdicts: tuple[CaseVerdict, ...]

    @property
    def kinds(self) -> str:
        """Name the mistakes that the judges made, for a filter."""
        made = {verdict.outcome for verdict in self.verdicts}
        return ", ".join(kind for kind in ("false positive", "false negative") if kind in made)


def chosen_cases(
    source: Source, observed: Mapping[str, Observations], question: LabelName, count: int
) -> tuple[list[ReportedCase], int]:
    """Choose at most ``count`` trajectories: those that most judges wrongly accept first, then
    those that most wrongly reject, by key. Return them with the number of all that a judge got
    wrong."""
    keys = wrong_keys(observed)
    chosen = keys[:count]
    verdicts = _verdicts(judgments_of(source.judgments, set(chosen)))
    return [_case(key, verdicts.get(key, []), source, question) for key in chosen], len(keys)


def wrong_keys(observed: Mapping[str, Observations]) -> list[TrajectoryKey]:
    """List the trajectories that a judge got wrong, in the order of ``chosen_cases``."""
    accepted: dict[TrajectoryKey, int] = {}
    rejected: dict[TrajectoryKey, int] = {}
    for seen in observed.values():
        wrong = seen.answered & ((seen.predictions == 1) != seen.labels)
        for counts, here in ((rejected, seen.labels), (accepted, ~seen.labels)):
            for place in seen.index[np.flatnonzero(wrong & here)].tolist():
                key = seen.reference.keys.key(place)
                counts[key] = counts.get(key, 0) + 1
    return sorted(
        {**accepted, **rejected},
        key=lambda key: (-accepted.get(key, 0), -rejected.get(key, 0), key.order),
    )


def _verdicts(judgments: Sequence[Judgment]) -> dict[TrajectoryKey, list[Judgment]]:
    """Collect each trajectory's judgments, one a judge, judges in the order of their names."""
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    found: dict[TrajectoryKey, list[Judgment]] = {}
    for judge in sorted(by_judge):
        for judgment in one_per_trajectory(by_judge[judge]):
            found.setdefault(judgment.key, []).append(judgment)
    return found


def _case(
    key: TrajectoryKey, judgments: Sequence[Judgment], source: Source, question: LabelName
) -> ReportedCase:
    annotation = source.labels.get(key)
    label = getattr(annotation, question, None)
    verdicts = tuple(_verdict(judgment, label, question) for judgment in judgments)
    return ReportedCase(key, label, annotation, source.rewards.get(key), verdicts)


def _verdict(judgment: Judgment, label: bool | None, question: LabelName) -> CaseVerdict:
    answer = getattr(judgment, question) if answered(judgment, question) else None
    reply = judgment.calls[-1].text if judgment.calls else ""
    return CaseVerdict(
        judge=judgment.judge,
        answer=answer,
        outcome=_outcome(answer, label),
        status=judgment.status.value,
        score=judgment.score,
        reasoning=judgment.reasoning or judgment.detail or reply,
    )


def _outcome(answer: bool | None, label: bool | None) -> Outcome:
    if answer is None:
        return "no verdict"
    if label is None:
        return "unlabelled"
    if answer == label:
        return "right"
    return "false positive" if answer else "false negative"
