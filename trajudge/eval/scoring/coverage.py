"""Coverage: statuses, shortened prompts, trajectories not judged, unsure labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trajudge.eval.data.index.columns import STATUSES
from trajudge.eval.rungs import RUNGS, WHOLE
from trajudge.eval.scoring.groups import TrajectoryGroup
from trajudge.eval.scoring.observations import Predictions
from trajudge.eval.scoring.records import Coverage, Label
from trajudge.eval.scoring.reference import UNKNOWN
from trajudge.eval.stats.interval import Bools


def coverage_of(
    judge: str,
    group: TrajectoryGroup,
    predictions: Predictions,
    expected: Bools,
    members: Bools,
    *,
    training: Bools,
    answers: Mapping[Label, Bools],
) -> Coverage:
    """Count how the judgments of a group ended.

    ``expected`` (T,) are the trajectories that the judge had to judge, ``members`` (T,) those of
    the group, ``training`` (T,) those that are left out because the judge was trained on them;
    ``answers`` (N,) tell of every label that was predicted which judgments gave it.
    """
    inside = members[predictions.index]
    ended = np.bincount(predictions.status[inside], minlength=len(STATUSES)).tolist()
    cut = np.bincount(predictions.rung[inside], minlength=len(RUNGS)).tolist()
    judged, trained = int(inside.sum()), int((training & members).sum())
    annotated = predictions.reference.annotated[predictions.index]
    answered_by = {label: inside & answered for label, answered in answers.items()}
    return Coverage(
        judge=judge,
        benchmark=group.benchmark,
        agent=group.agent,
        judged=judged,
        statuses={status: n for status, n in zip(STATUSES, ended, strict=True) if n},
        shortened={rung: n for rung, n in zip(RUNGS, cut, strict=True) if n and rung != WHOLE},
        unjudged=int((expected & members & ~training).sum()) - judged,
        unlabelled=int((inside & ~annotated).sum()),
        training=trained,
        verdicts={label: int(answered.sum()) for label, answered in answered_by.items()},
        positive={
            label: int((answered & (predictions.values[label] == 1)).sum())
            for label, answered in answered_by.items()
        },
    )


def unsure(predictions: Predictions, label: Label) -> Bools:
    """Tell which judged trajectories (N,) have an annotation that lacks this label."""
    reference = predictions.reference
    unknown = reference.annotated & (reference.labels[label] == UNKNOWN)
    return np.asarray(unknown[predictions.index])
