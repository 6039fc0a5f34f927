"""What one judge said of one label beside what the expert said, as arrays.

A failed judgment is never dropped in silence: ``missing`` states what it counts as.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotations.agentrewardbench import benchmark_of
from annotations.model import Labels
from eval.protocol import MISSING
from eval.scores import LABELS, Label, Missing
from eval.stats.interval import Bools, Floats, Ints
from judges.model import Judgment, Status
from trajectories.model import TrajectoryKey

# There was a reply, without the verdict: AgentRewardBench counts the missing tag as 0.
_REPLY_WITHOUT_VERDICT = {Status.OK, Status.UNPARSABLE, Status.TRUNCATED}

Texts = NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Observations:
    """Arrays of one shape (N,), in the order of keys, over the annotated trajectories whose label
    is known. ``truth`` is bool; ``verdict`` 1, 0 or -1 (missing); ``score`` and ``reward`` are
    nan where there is none."""

    benchmark: Texts
    agent: Texts
    task: Texts
    attempt: Ints
    truth: Bools
    verdict: NDArray[np.int8]
    answered: Bools
    score: Floats
    reward: Floats

    def where(self, chosen: Bools) -> Observations:
        """The chosen ones alone."""
        return self.at(np.flatnonzero(chosen))

    def at(self, places: ArrayLike) -> Observations:
        """Those at ``places``, in that order."""
        index = np.asarray(places, dtype=np.int64)
        return replace(self, **{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def ruled(self) -> Observations:
        """The official reward as the verdict: above one half is success."""
        accepted = (self.reward > 0.5).astype(np.int8)
        every = np.ones(len(self), dtype=bool)
        nothing = np.full(len(self), np.nan)
        return replace(self, verdict=accepted, answered=every, score=nothing)

    def __len__(self) -> int:
        return len(self.truth)


def observe(
    judgments: Sequence[Judgment],
    label: Label,
    labels: Labels,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing,
) -> Observations:
    """Observations of one judge, one judgment a trajectory; unsure labels are left out."""
    known = [
        (j, getattr(labels[j.key], label), rewards.get(j.key))
        for j in judgments
        if j.key in labels and getattr(labels[j.key], label) is not None
    ]
    has_scores = label == "success" and any(j.score is not None for j, _, _ in known)
    return Observations(
        benchmark=_texts(benchmark_of(j.key) for j, _, _ in known),
        agent=_texts(j.key.agent for j, _, _ in known),
        task=_texts(j.key.task_id for j, _, _ in known),
        attempt=np.array([j.key.attempt for j, _, _ in known], dtype=np.int64),
        truth=np.array([bool(truth) for _, truth, _ in known], dtype=bool),
        verdict=np.array([_verdict(j, label, missing) for j, _, _ in known], dtype=np.int8),
        answered=np.array([answered(j, label) for j, _, _ in known], dtype=bool),
        score=_floats(_score(j, missing) if has_scores else None for j, _, _ in known),
        reward=_floats(reward for _, _, reward in known),
    )


def answered(judgment: Judgment, label: Label) -> bool:
    """Whether the judge gave this label."""
    return judgment.status is Status.OK and getattr(judgment, label) is not None


def asked_labels(judgments: Sequence[Judgment]) -> list[Label]:
    """Success, and what this judge answered at least once."""
    return [
        label
        for label in LABELS
        if label == "success" or any(getattr(j, label) is not None for j in judgments)
    ]


def one_per_trajectory(judgments: Iterable[Judgment]) -> list[Judgment]:
    """One judgment a trajectory, in the order of keys: of several samples the strict majority of
    those that answered, label by label (a tie is a no), and the mean of their scores."""
    samples: dict[TrajectoryKey, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        samples[judgment.key].append(judgment)
    return [_majority(samples[key]) for key in sorted(samples, key=lambda key: key.order)]


def _majority(samples: Sequence[Judgment]) -> Judgment:
    said = [judgment for judgment in samples if judgment.status is Status.OK]
    if len(samples) == 1 or not said:
        return samples[0]
    merged: dict[str, bool | float | None] = {}
    for label in LABELS:
        votes = [vote for j in said if (vote := getattr(j, label)) is not None]
        merged[label] = 2 * sum(votes) > len(votes) if votes else None
    scores = [j.score for j in said if j.score is not None]
    merged["score"] = sum(scores) / len(scores) if scores else None
    return said[0].model_copy(update=merged)


def _verdict(judgment: Judgment, label: Label, missing: Missing) -> int:
    """1, 0, or -1 for what the paper's protocol calls a missing response."""
    if answered(judgment, label):
        return int(getattr(judgment, label))
    if missing == "agentrewardbench" and judgment.status not in _REPLY_WITHOUT_VERDICT:
        return MISSING
    return 0


def _score(judgment: Judgment, missing: Missing) -> float | None:
    """A failed judgment's is 0 where it counts as not accepted."""
    if judgment.status is Status.OK:
        return judgment.score
    return 0.0 if missing == "negative" else None


def _texts(values: Iterable[str]) -> Texts:
    return np.array(list(values), dtype=np.str_)


def _floats(values: Iterable[Any]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=float)
