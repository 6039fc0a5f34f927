"""Predictions of one judge beside the experts' labels, as arrays.

A failed judgment is never dropped in silence: ``missing`` states what it counts as.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trajudge.annotations.model import Labels
from trajudge.eval.data.index.columns import STATUS_CODE, STATUSES, VERDICTS, JudgmentColumns
from trajudge.eval.data.index.judgments import columns_of
from trajudge.eval.data.index.keys import Codes
from trajudge.eval.data.index.labels import LabelColumns, RewardColumns
from trajudge.eval.scoring.protocol import MISSING
from trajudge.eval.scoring.records import LABELS, Label, Missing
from trajudge.eval.scoring.reference import UNKNOWN, ReferenceLabels
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.eval.stats.intervals.cluster_bootstrap import sum_clusters
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
    index: Codes
    labels: Bools
    predictions: NDArray[np.int8]
    answered: Bools
    scores: Floats

    @property
    def benchmark(self) -> Codes:
        """Number the trajectories by benchmark: equal numbers for one benchmark."""
        return self.reference.benchmark[self.index]

    @property
    def task(self) -> Codes:
        """Number the trajectories by task: equal numbers for one task of one benchmark."""
        return self.reference.task[self.index]

    @property
    def reward(self) -> Floats:
        """Return the official reward; nan where there is none."""
        return self.reference.reward[self.index]

    @property
    def weights(self) -> Floats | None:
        """Return one over the inclusion probability of every trajectory, in proportion to the mean
        over all labels; None where all were drawn alike."""
        if not self.reference.is_weighted:
            return None
        return self.reference.weight[self.index]

    def sum_by_task(self, columns: NDArray[Any], judges: int) -> tuple[Floats, Floats | None, Ints]:
        """Add up columns (N, J * K) by task within benchmark: the sums (J, C, K), of weighted
        trajectories those of the squared weights, and the number of tasks of each benchmark."""
        parts = [columns]
        if (weights := self.weights) is not None:
            parts = [columns * weights[:, None], columns * weights[:, None] ** 2]
        clusters = sum_clusters(np.concatenate(parts, axis=1), self.task, self.benchmark)
        sums = [
            part.reshape(len(part), judges, -1).transpose(1, 0, 2)
            for part in np.split(clusters.sums, len(parts), axis=1)
        ]
        return sums[0], sums[1] if len(sums) > 1 else None, clusters.stratum_sizes

    def where(self, chosen: Bools) -> Observations:
        """Keep those where ``chosen`` (N,) holds."""
        return self.at(np.flatnonzero(chosen))

    def at(self, positions: ArrayLike) -> Observations:
        """Keep those at these positions, in that order."""
        chosen = np.asarray(positions, dtype=np.int64)
        kept: dict[str, Any] = {name: _at(getattr(self, name), chosen) for name in _ARRAYS}
        return replace(self, **kept)

    def as_rule_based(self) -> Observations:
        """Predict by the official reward instead: above one half is success."""
        accepted = (self.reward > 0.5).astype(np.int8)
        every = np.broadcast_to(np.True_, len(self))
        return replace(self, predictions=accepted, answered=every, scores=_no_scores(len(self)))

    @cached_property
    def right(self) -> Bools:
        """Tell which predictions are the expert's label; a missing one is not."""
        return np.asarray(self.predictions == self.labels.astype(np.int8))

    @cached_property
    def trajectories(self) -> bytes:
        """Equal for observations of the same trajectories, of one reference."""
        return blake2b(self.index.data, digest_size=16).digest()

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
    index: Codes
    status: NDArray[np.int8]
    rung: NDArray[np.int8]
    values: Mapping[Label, NDArray[np.int8]]
    scores: Floats

    @classmethod
    def of(
        cls,
        judgments: JudgmentColumns,
        reference: ReferenceLabels,
        index: Codes | None = None,
    ) -> Predictions:
        """Read one judge's judgments, at ``index`` (N,) of the reference, which is all that it was
        made of unless it is given; several samples of a trajectory are one prediction: label by
        label the strict majority of the samples that answered (a tie is a no), and the mean of
        their scores."""
        index = reference.judged if index is None else index
        order = np.argsort(index, kind="stable")
        starts = np.flatnonzero(np.diff(index[order], prepend=-1))
        values, scores, chosen = judgments.verdicts[:, order], judgments.score[order], order
        if len(starts) < len(order):
            values, scores, chosen = _majorities(values, scores, judgments.ok()[order], starts)
            chosen = order[chosen]
        return cls(
            reference=reference,
            index=index[order][starts],
            status=judgments.status[chosen],
            rung=judgments.rung[chosen],
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
    strict majority of the samples that answered (a tie is a no), and the mean of their scores. The
    reasoning is that of the first sample on the side of the majority, the place of a fault that of
    the first that says of the process what the majority says."""
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
    shown = _closest(answers, merged, ("success", "process"))
    of_process = _closest(answers, merged, ("process",))
    fault = {name: getattr(of_process, name) for name in ("failure_step", "failure_type")}
    return shown.model_copy(update=merged | fault)


def _closest(
    answers: Sequence[Judgment], merged: Mapping[str, object], labels: Sequence[Label]
) -> Judgment:
    """Return the first sample that says what the majority says, the first label before others."""
    return max(answers, key=lambda one: [getattr(one, name) == merged[name] for name in labels])


def _counted_scores(scores: Floats, ok: Bools, label: Label, missing: Missing) -> Floats:
    """Keep the scores of success; a failed judgment's is 0 where it counts as not accepted."""
    if label != "success" or np.isnan(scores).all():
        return _no_scores(len(scores))
    return np.where(ok, scores, 0.0 if missing == "negative" else np.nan)


def _no_scores(size: int) -> Floats:
    """Return nan for so many, in the memory of one."""
    return np.broadcast_to(np.float64("nan"), size)


def _at(values: NDArray[Any], chosen: Ints) -> NDArray[Any]:
    """Keep the values at these places; one value that stands for all still takes the memory of
    one."""
    if len(values) and values.strides == (0,):
        return np.broadcast_to(values[0], len(chosen))
    return np.asarray(values[chosen])


def _majorities(
    verdicts: NDArray[np.int8], score: Floats, ok: Bools, starts: Ints
) -> tuple[NDArray[np.int8], Floats, Ints]:
    """Merge samples, which stand behind each other from ``starts`` (T,) on: verdicts
    (len(VERDICTS), T), scores (T,), and the row whose status and prompt stand for them (T,): the
    first that answered, else the first."""
    sizes = np.diff(starts, append=len(ok))
    answers = np.add.reduceat(ok.astype(np.int64), starts)
    row = np.arange(len(ok))
    chosen = np.where(answers, np.minimum.reduceat(np.where(ok, row, len(row)), starts), starts)
    decided = ok & (verdicts != UNKNOWN)
    votes = np.add.reduceat(decided.astype(np.int64), starts, axis=1)
    accepted = np.add.reduceat((decided & (verdicts == 1)).astype(np.int64), starts, axis=1)
    majority = np.where(votes, 2 * accepted > votes, UNKNOWN)
    merged = (sizes > 1) & (answers > 0)
    values = np.where(merged, majority, verdicts[:, chosen]).astype(np.int8)
    scores = score[chosen]
    scored = np.where(ok, score, np.nan)
    for place in np.flatnonzero(merged).tolist() if not np.isnan(score).all() else ():
        mine = scored[starts[place] : starts[place] + sizes[place]]
        means = mine[~np.isnan(mine)].tolist()
        scores[place] = sum(means) / len(means) if means else np.nan
    return values, scores, chosen
