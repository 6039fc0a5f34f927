"""What one judge said of one label beside what the expert said, as arrays.

A failed judgment is never dropped in silence: ``missing`` states what it counts as.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajudge.annotations.model import Labels
from trajudge.eval.rungs import furthest_rung
from trajudge.eval.scoring.protocol import MISSING
from trajudge.eval.scoring.records import LABELS, Label, Missing
from trajudge.eval.scoring.reference import UNKNOWN, Reference
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey

STATUSES = tuple(Status)
# There was a reply, without the verdict: AgentRewardBench counts the missing tag as 0.
_REPLY_WITHOUT_VERDICT = {Status.OK, Status.UNPARSABLE, Status.TRUNCATED}
_CODE = {status: code for code, status in enumerate(STATUSES)}
_REPLIED = np.array([status in _REPLY_WITHOUT_VERDICT for status in STATUSES])
_ARRAYS = ("place", "truth", "verdict", "answered", "score")


@dataclass(frozen=True, eq=False)
class Observations:
    """Arrays of one shape (N,), in the order of keys, over the annotated trajectories whose label
    is known. ``place`` is where ``reference`` has the trajectory; ``truth`` is bool; ``verdict``
    1, 0 or -1 (missing); ``score`` is nan where there is none."""

    reference: Reference
    place: Ints
    truth: Bools
    verdict: NDArray[np.int8]
    answered: Bools
    score: Floats

    @property
    def benchmark(self) -> Ints:
        """Equal numbers for one benchmark."""
        return self.reference.benchmark[self.place]

    @property
    def task(self) -> Ints:
        """Equal numbers for one task of one benchmark."""
        return self.reference.task[self.place]

    @property
    def reward(self) -> Floats:
        """The official reward; nan where there is none."""
        return self.reference.reward[self.place]

    def where(self, chosen: Bools) -> Observations:
        """The chosen ones alone."""
        return self.at(np.flatnonzero(chosen))

    def at(self, places: ArrayLike) -> Observations:
        """Those at these positions, in that order."""
        index = np.asarray(places, dtype=np.int64)
        return replace(self, **{name: getattr(self, name)[index] for name in _ARRAYS})

    def ruled(self) -> Observations:
        """The official reward as the verdict: above one half is success."""
        accepted = (self.reward > 0.5).astype(np.int8)
        every = np.ones(len(self), dtype=bool)
        nothing = np.full(len(self), np.nan)
        return replace(self, verdict=accepted, answered=every, score=nothing)

    def __len__(self) -> int:
        return len(self.truth)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What one judge said, one judgment a trajectory: arrays of one shape (N,) in the order of
    keys. ``status`` indexes STATUSES, ``rung`` RUNGS; ``said`` is 1, 0 or UNKNOWN by label;
    ``score`` is nan where there is none."""

    reference: Reference
    place: Ints
    status: Ints
    rung: Ints
    said: Mapping[Label, NDArray[np.int8]]
    score: Floats

    @classmethod
    def of(cls, judgments: Sequence[Judgment], reference: Reference) -> Verdicts:
        """Of one judge's judgments; several samples of a trajectory are one verdict."""
        where = reference.place
        place = np.array([where[j.key] for j in judgments], dtype=np.int64)
        order = np.argsort(place, kind="stable")
        if (np.diff(place[order]) == 0).any():
            return cls.of(one_per_trajectory(judgments), reference)
        scores = [np.nan if j.score is None else j.score for j in judgments]
        said: dict[Label, NDArray[np.int8]] = {
            "success": _answers(j.success for j in judgments),
            "side_effect": _answers(j.side_effect for j in judgments),
            "repetition": _answers(j.repetition for j in judgments),
        }
        return cls(
            reference=reference,
            place=place[order],
            status=np.array([_CODE[j.status] for j in judgments], dtype=np.int64)[order],
            rung=np.array([furthest_rung(j.calls) for j in judgments], dtype=np.int64)[order],
            said={label: answers[order] for label, answers in said.items()},
            score=np.array(scores, dtype=float)[order],
        )

    def asked(self) -> list[Label]:
        """Success, and what this judge answered at least once."""
        return [
            label for label in LABELS if label == "success" or (self.said[label] != UNKNOWN).any()
        ]

    def answered(self, label: Label) -> Bools:
        """Tell which judgments ended well and gave this label, (N,)."""
        return np.asarray((self.status == _CODE[Status.OK]) & (self.said[label] != UNKNOWN))

    def observe(self, label: Label, missing: Missing) -> Observations:
        """Beside the expert's label; unsure ones are left out."""
        truth = self.reference.truth[label][self.place]
        known = np.flatnonzero(truth != UNKNOWN)
        said, status = self.said[label][known], self.status[known]
        ok = status == _CODE[Status.OK]
        answered = ok & (said != UNKNOWN)
        failed = np.where(_REPLIED[status] | (missing != "agentrewardbench"), 0, MISSING)
        return Observations(
            reference=self.reference,
            place=self.place[known],
            truth=truth[known] == 1,
            verdict=np.where(answered, said, failed).astype(np.int8),
            answered=answered,
            score=_counted_scores(self.score[known], ok, label, missing),
        )

    def __len__(self) -> int:
        return len(self.place)


def observe(
    judgments: Sequence[Judgment],
    label: Label,
    labels: Labels,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing,
) -> Observations:
    """Observations of one judge alone, one judgment a trajectory; unsure labels are left out."""
    reference = Reference.of({j.key for j in judgments}, labels, rewards)
    return Verdicts.of(judgments, reference).observe(label, missing)


def answered(judgment: Judgment, label: Label) -> bool:
    """Whether the judge gave this label."""
    return judgment.status is Status.OK and getattr(judgment, label) is not None


def one_per_trajectory(judgments: Iterable[Judgment]) -> list[Judgment]:
    """One judgment a trajectory, in the order of keys: of several samples the strict majority of
    those that answered, label by label (a tie is a no), and the mean of their scores."""
    samples: dict[TrajectoryKey, list[Judgment]] = {}
    for judgment in judgments:
        samples.setdefault(judgment.key, []).append(judgment)
    return [_majority(samples[key]) for key in sorted(samples, key=lambda key: key.order)]


def _majority(samples: Sequence[Judgment]) -> Judgment:
    if len(samples) == 1:
        return samples[0]
    said = [judgment for judgment in samples if judgment.status is Status.OK]
    if not said:
        return samples[0]
    merged: dict[str, bool | float | None] = {}
    for label in LABELS:
        votes = [vote for j in said if (vote := getattr(j, label)) is not None]
        merged[label] = 2 * sum(votes) > len(votes) if votes else None
    scores = [j.score for j in said if j.score is not None]
    merged["score"] = sum(scores) / len(scores) if scores else None
    return said[0].model_copy(update=merged)


def _counted_scores(scores: Floats, ok: Bools, label: Label, missing: Missing) -> Floats:
    """Those of success; a failed judgment's is 0 where it counts as not accepted."""
    if label != "success" or np.isnan(scores).all():
        return np.full(len(scores), np.nan)
    return np.where(ok, scores, 0.0 if missing == "negative" else np.nan)


def _answers(values: Iterable[bool | None]) -> NDArray[np.int8]:
    return np.array([UNKNOWN if value is None else value for value in values], dtype=np.int8)
