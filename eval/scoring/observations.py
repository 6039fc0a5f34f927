"""Predictions of one judge beside the experts' labels, as arrays.

A failed judgment is never dropped in silence: ``missing`` states what it counts as.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajudge.annotations.model import Labels
from trajudge.eval.data.index.columns import STATUS_CODE, STATUSES, VERDICTS, JudgmentColumns
from trajudge.eval.data.index.judgments import columns_of
from trajudge.eval.data.index.labels import LabelColumns, RewardColumns
from trajudge.eval.scoring.protocol import MISSING
from trajudge.eval.scoring.records import LABELS, Label, Missing
from trajudge.eval.scoring.reference import UNKNOWN, ReferenceLabels
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey

# There was a reply, without the verdict: AgentRewardBench counts the missing tag as 0.
_REPLY_WITHOUT_VERDICT = {Status.OK, Status.UNPARSABLE, Status.TRUNCATED}
_REPLIED = np.array([status in _REPLY_WITHOUT_VERDICT for status in STATUSES])
_ARRAYS = ("index", "labels", "predictions", "answered", "scores")


@dataclass(frozen=True, eq=False)
class Observations:
    """One label of one judge: arrays of one shape (N,), in the order of keys, over the annotated
    trajectories whose label is known.

    ``index`` is the trajectory's in ``reference``; ``labels`` are the expert's (bool);
    ``predictions`` 1, 0 or -1 (missing), of which ``answered`` were given by the judge; ``scores``
    are nan where there is none.
    """

    reference: ReferenceLabels
    index: Ints
    labels: Bools
    predictions: NDArray[np.int8]
    answered: Bools
    scores: Floats

    @property
    def benchmark(self) -> Ints:
        """Number the trajectories by benchmark: equal numbers for one benchmark."""
        return self.reference.benchmark[self.index]

    @property
    def task(self) -> Ints:
        """Number the trajectories by task: equal numbers for one task of one benchmark."""
        return self.reference.task[self.index]

    @property
    def reward(self) -> Floats:
        """Return the official reward; nan where there is none."""
        return self.reference.reward[self.index]

    def where(self, chosen: Bools) -> Observations:
        """Keep those where ``chosen`` (N,) holds."""
        return self.at(np.flatnonzero(chosen))

    def at(self, positions: ArrayLike) -> Observations:
        """Keep those at these positions, in that order."""
        chosen = np.asarray(positions, dtype=np.int64)
        return replace(self, **{name: getattr(self, name)[chosen] for name in _ARRAYS})

    def as_rule_based(self) -> Observations:
        """Predict by the official reward instead: above one half is success."""
        accepted = (self.reward > 0.5).astype(np.int8)
        every = np.ones(len(self), dtype=bool)
        nothing = np.full(len(self), np.nan)
        return replace(self, predictions=accepted, answered=every, scores=nothing)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What one judge predicted, one judgment a trajectory: arrays of one shape (N,) in the order of
    keys.

    ``index`` is the trajectory's in ``reference``; ``status`` indexes STATUSES, ``rung`` RUNGS;
    ``values`` are 1, 0 or UNKNOWN by label; ``scores`` are nan where there is none.
    """

    reference: ReferenceLabels
    index: Ints
    status: Ints
    rung: Ints
    values: Mapping[Label, NDArray[np.int8]]
    scores: Floats

    @classmethod
    def of(cls, judgments: JudgmentColumns, reference: ReferenceLabels) -> Predictions:
        """Read one judge's judgments; several samples of a trajectory are one prediction: label by
        label the strict majority of the samples that answered (a tie is a no), and the mean of
        their scores."""
        index = reference.places(judgments.keys)
        order = np.argsort(index, kind="stable")
        judged = judgments.at(order)
        starts = np.flatnonzero(np.diff(index[order], prepend=-1))
        values, scores, chosen = judged.verdicts, judged.score, np.arange(len(judged))
        if len(starts) < len(judged):
            values, scores, chosen = _majorities(judged, starts)
        return cls(
            reference=reference,
            index=index[order][starts],
            status=judged.status[chosen].astype(np.int64),
            rung=judged.rung[chosen].astype(np.int64),
            values={label: values[VERDICTS.index(label)] for label in LABELS},
            scores=scores,
        )

    def predicted_labels(self) -> list[Label]:
        """List success, and what this judge answered at least once."""
        return [
            label for label in LABELS if label == "success" or (self.values[label] != UNKNOWN).any()
        ]

    def answered(self, label: Label) -> Bools:
        """Tell which judgments ended well and gave this label, (N,)."""
        return np.asarray((self.status == STATUS_CODE[Status.OK]) & (self.values[label] != UNKNOWN))

    def observe(self, label: Label, missing: Missing) -> Observations:
        """Set the predictions beside the expert's labels; unsure ones are left out."""
        expert = self.reference.labels[label][self.index]
        known = np.flatnonzero(expert != UNKNOWN)
        values, status = self.values[label][known], self.status[known]
        answered = self.answered(label)[known]
        failed = np.where(_REPLIED[status] | (missing != "agentrewardbench"), 0, MISSING)
        ok = status == STATUS_CODE[Status.OK]
        return Observations(
            reference=self.reference,
            index=self.index[known],
            labels=expert[known] == 1,
            predictions=np.where(answered, values, failed).astype(np.int8),
            answered=answered,
            scores=_counted_scores(self.scores[known], ok, label, missing),
        )

    def __len__(self) -> int:
        return len(self.index)


def observe(
    judgments: Sequence[Judgment],
    label: Label,
    labels: Labels,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing,
) -> Observations:
    """Observe one judge alone, one judgment a trajectory; unsure labels are left out."""
    columns = columns_of(judgments)
    mine = {j.key: rewards.get(j.key) for j in judgments}
    reference = ReferenceLabels.of(columns.keys, LabelColumns.of(labels), RewardColumns.of(mine))
    return Predictions.of(columns, reference).observe(label, missing)


def answered(judgment: Judgment, label: Label) -> bool:
    """Tell whether the judge gave this label."""
    return judgment.status is Status.OK and getattr(judgment, label) is not None


def one_per_trajectory(judgments: Iterable[Judgment]) -> list[Judgment]:
    """Merge samples into one judgment per trajectory, in the order of keys: label by label the
    strict majority of the samples that answered (a tie is a no), and the mean of their scores."""
    samples: dict[TrajectoryKey, list[Judgment]] = {}
    for judgment in judgments:
        samples.setdefault(judgment.key, []).append(judgment)
    return [_majority(samples[key]) for key in sorted(samples, key=lambda key: key.order)]


def _majority(samples: Sequence[Judgment]) -> Judgment:
    if len(samples) == 1:
        return samples[0]
    answers = [judgment for judgment in samples if judgment.status is Status.OK]
    if not answers:
        return samples[0]
    merged: dict[str, bool | float | None] = {}
    for label in LABELS:
        votes = [vote for j in answers if (vote := getattr(j, label)) is not None]
        merged[label] = 2 * sum(votes) > len(votes) if votes else None
    scores = [j.score for j in answers if j.score is not None]
    merged["score"] = sum(scores) / len(scores) if scores else None
    return answers[0].model_copy(update=merged)


def _counted_scores(scores: Floats, ok: Bools, label: Label, missing: Missing) -> Floats:
    """Keep the scores of success; a failed judgment's is 0 where it counts as not accepted."""
    if label != "success" or np.isnan(scores).all():
        return np.full(len(scores), np.nan)
    return np.where(ok, scores, 0.0 if missing == "negative" else np.nan)


def _majorities(judgments: JudgmentColumns, starts: Ints) -> tuple[NDArray[np.int8], Floats, Ints]:
    """Merge samples, which stand behind each other from ``starts`` (T,) on: verdicts
    (len(VERDICTS), T), scores (T,), and the row whose status and prompt stand for them (T,): the
    first that answered, else the first."""
    ok = judgments.ok()
    sizes = np.diff(starts, append=len(judgments))
    answers = np.add.reduceat(ok.astype(np.int64), starts)
    row = np.arange(len(judgments))
    chosen = np.where(answers, np.minimum.reduceat(np.where(ok, row, len(row)), starts), starts)
    decided = ok & (judgments.verdicts != UNKNOWN)
    votes = np.add.reduceat(decided.astype(np.int64), starts, axis=1)
    accepted = np.add.reduceat(
        (decided & (judgments.verdicts == 1)).astype(np.int64), starts, axis=1
    )
    majority = np.where(votes, 2 * accepted > votes, UNKNOWN)
    merged = (sizes > 1) & (answers > 0)
    values = np.where(merged, majority, judgments.verdicts[:, chosen]).astype(np.int8)
    scores = judgments.score[chosen]
    scored = np.where(ok, judgments.score, np.nan)
    for place in np.flatnonzero(merged).tolist() if not np.isnan(judgments.score).all() else ():
        mine = scored[starts[place] : starts[place] + sizes[place]]
        means = mine[~np.isnan(mine)].tolist()
        scores[place] = sum(means) / len(means) if means else np.nan
    return values, scores, chosen
