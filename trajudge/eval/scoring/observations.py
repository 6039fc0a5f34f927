"""Predictions of judges and the experts' labels as arrays, the groups that tables have rows for,
and what a judge was trained on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of, family_of
from trajudge.eval.scoring.records import ALL_AGENTS, LABELS, OVERALL, LabelName, Missing
from trajudge.eval.store.labels import LabelColumns, RewardColumns
from trajudge.eval.store.table import (
    STATUS_CODE,
    STATUSES,
    UNKNOWN,
    VERDICTS,
    Codes,
    JudgmentTable,
    KeyColumns,
    distinct,
    joined,
    marked,
    places_among,
)
from trajudge.judges.model import Judgment, Status
from trajudge.judges.training import key_hash
from trajudge.stats.intervals import Bools, Floats, Ints, sum_clusters
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.terminal import count_of

Name = TypeVar("Name", str, tuple[str, str])


@dataclass(frozen=True, eq=False)
class ReferenceLabels:
    """Arrays of one shape (T,), one entry a trajectory in the order of ``keys``.

    ``benchmark`` and ``agent`` index the names in ``benchmarks`` and ``agents``; ``task`` is a
    number of its own for every task of a benchmark, or every family of them. ``labels`` are the
    expert's, 1, 0 or UNKNOWN by name, which is all that a trajectory that is not ``annotated`` has;
    ``reward`` is nan where unknown; ``in_run`` tells which have one, or are said to have none.
    ``judged`` (N,) are the places of the keys that it was made of. ``weight`` is one over the
    probability with which a label's trajectory was drawn, in proportion to their mean; 1 where all
    were drawn alike.
    """

    keys: KeyColumns
    benchmarks: tuple[str, ...]
    agents: tuple[str, ...]
    benchmark: Codes
    agent: Codes
    task: Codes
    annotated: Bools
    labels: Mapping[LabelName, NDArray[np.int8]]
    reward: Floats
    in_run: Bools
    judged: Codes
    weight: Floats

    @classmethod
    def of(
        cls, judged: KeyColumns, labels: LabelColumns, rewards: RewardColumns
    ) -> ReferenceLabels:
        """Look up the labels and the official rewards of the trajectories that were judged, and
        of those that have a reward. Raises UserError where only some of the labels tell how
        they were drawn."""
        keys, place = distinct(joined([judged, rewards.keys, labels.keys]))
        size, known = len(keys), len(judged) + len(rewards.keys)
        expert = np.full((len(VERDICTS), size), UNKNOWN, dtype=np.int8)
        expert[:, place[known:]] = labels.verdicts
        reward = np.full(size, np.nan)
        reward[place[len(judged) : known]] = rewards.reward
        weight = np.ones(size)
        weight[place[known:]] = labels.weights()
        annotated = marked(size, place[known:])
        in_run = marked(size, place[len(judged) : known])
        wanted = marked(size, place[:known])
        number = np.cumsum(wanted, dtype=np.int32) - 1
        where = number[place[: len(judged)]]
        del place, number
        keys = keys.at(wanted)
        benchmarks, benchmark, task = _groups(keys)
        return cls(
            keys=keys,
            benchmarks=benchmarks,
            agents=keys.agents,
            benchmark=benchmark,
            agent=keys.agent,
            task=task,
            annotated=annotated[wanted],
            labels={label: expert[VERDICTS.index(label)][wanted] for label in LABELS},
            reward=reward[wanted],
            in_run=in_run[wanted],
            judged=where,
            weight=weight[wanted],
        )

    @cached_property
    def index(self) -> Mapping[TrajectoryKey, int]:
        """Find a trajectory's place by its key, in the order of keys."""
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def members(self) -> dict[TrajectoryGroup, Bools]:
        """Hold which trajectories (T,) belong to the groups that were asked for."""
        return {}

    @cached_property
    def is_weighted(self) -> bool:
        """Tell whether some labels were more likely to be drawn than others."""
        return bool((self.weight != 1).any())

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, keys: KeyColumns) -> Ints:
        """Find the trajectories of ``keys`` (N,); -1 for one that is not here."""
        return places_among(keys, self.keys)


def _groups(keys: KeyColumns) -> tuple[tuple[str, ...], Codes, Codes]:
    """Return the names of the benchmarks to report under, the benchmark of every trajectory among
    them, and its task's number; looked up once a task."""
    pair = keys.benchmark.astype(np.int64) * len(keys.tasks) + keys.task
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    families = [(benchmark_of(key), family_of(key)) for key in map(keys.key, first.tolist())]
    benchmarks, benchmark = _codes([name for name, _ in families])
    _, task = _codes(families)
    return benchmarks, benchmark[which], task[which]


def _codes(names: list[Name]) -> tuple[tuple[Name, ...], Codes]:
    """Return the distinct names in order, and the index of each among them."""
    distinct_names = sorted(set(names))
    code = {name: number for number, name in enumerate(distinct_names)}
    return tuple(distinct_names), np.array([code[name] for name in names], dtype=np.int32)


def reward_notes(rewards: Floats) -> list[str]:
    """Say how many of the official rewards (T,), nan where unknown, are on another scale than the
    rule-based baseline reads."""
    outside = rewards[(rewards < 0) | (rewards > 1)]
    if not len(outside):
        return []
    known = count_of(int((~np.isnan(rewards)).sum()), "official reward")
    return [
        f"warning: rule-based: {len(outside)} of {known} not between 0 and 1, such as "
        f"{outside[0]:g}: above 0.5 counts as success, therefore scale them in the data"
    ]


MISSING = -1

# There was a reply, without the verdict: AgentRewardBench counts the missing tag as 0.
_REPLY_WITHOUT_VERDICT = {Status.OK, Status.UNPARSABLE, Status.TRUNCATED}

_REPLIED = np.array([status in _REPLY_WITHOUT_VERDICT for status in STATUSES])


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
            part.reshape(len(part), judges, part.shape[1] // judges).transpose(1, 0, 2)
            for part in np.split(clusters.sums, len(parts), axis=1)
        ]
        return sums[0], sums[1] if len(sums) > 1 else None, clusters.stratum_sizes

    def at(self, chosen: Bools | Ints) -> Observations:
        """Keep those where a mask (N,) holds, or those at these positions, in that order."""
        return Observations(
            self.reference,
            self.index[chosen],
            self.labels[chosen],
            self.predictions[chosen],
            self.answered[chosen],
            self.scores[chosen],
        )

    def counted(self, missing: Missing) -> Observations:
        """Leave out what was not answered, where ``missing`` says so."""
        return self.at(self.answered) if missing == "exclude" else self

    def rewarded(self) -> Observations:
        """Keep the trajectories with an official reward."""
        return self.at(~np.isnan(self.reward))

    def as_rule_based(self) -> Observations:
        """Predict by the official reward instead: above one half is success."""
        return replace(
            self,
            predictions=(self.reward > 0.5).astype(np.int8),
            answered=np.ones(len(self), dtype=bool),
            scores=np.full(len(self), np.nan),
        )

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
    values: Mapping[LabelName, NDArray[np.int8]]
    scores: Floats

    @classmethod
    def of(
        cls,
        judgments: JudgmentTable,
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

    def labels(self) -> list[LabelName]:
        """List success, and what this judge answered at least once."""
        return [
            label for label in LABELS if label == "success" or (self.values[label] != UNKNOWN).any()
        ]

    def answered(self, label: LabelName) -> Bools:
        """Tell which judgments ended well and gave this label, (N,)."""
        return np.asarray((self.status == STATUS_CODE[Status.OK]) & (self.values[label] != UNKNOWN))

    def observe(self, label: LabelName, missing: Missing) -> Observations:
        """Set the predictions beside the expert's labels; unsure ones are left out."""
        expert = self.reference.labels[label][self.index]
        known = np.flatnonzero(expert != UNKNOWN)
        values, status = self.values[label][known], self.status[known]
        answered = self.answered(label)[known]
        failed = np.where(_REPLIED[status] | (missing != "agentrewardbench"), 0, MISSING)
        # Only success has a score; a failed judgment's is 0 where it counts as not accepted.
        scores = np.full(len(known), np.nan)
        if label == "success" and not np.isnan(mine := self.scores[known]).all():
            unscored = 0.0 if missing == "negative" else np.nan
            scores = np.where(status == STATUS_CODE[Status.OK], mine, unscored)
        return Observations(
            reference=self.reference,
            index=self.index[known],
            labels=expert[known] == 1,
            predictions=np.where(answered, values, failed).astype(np.int8),
            answered=answered,
            scores=scores,
        )

    def __len__(self) -> int:
        return len(self.index)


def answered(judgment: Judgment, label: LabelName) -> bool:
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
    answers: Sequence[Judgment], merged: Mapping[str, object], labels: Sequence[LabelName]
) -> Judgment:
    """Return the first sample that says what the majority says, the first label before others."""
    return max(answers, key=lambda one: [getattr(one, name) == merged[name] for name in labels])


def _majorities(
    verdicts: NDArray[np.int8], score: Floats, ok: Bools, starts: Ints
) -> tuple[NDArray[np.int8], Floats, Ints]:
    """Merge samples, which stand behind each other from ``starts`` (T,) on: verdicts
    (len(VERDICTS), T), scores (T,), and the row whose status and prompt stand for them (T,): the
    first that answered, else the first."""
    sizes = np.diff(starts, append=len(ok))
    row = np.arange(len(ok))
    first = np.minimum.reduceat(np.where(ok, row, len(row)), starts)
    chosen = np.where(first < len(row), first, starts)
    merged = (sizes > 1) & (first < len(row))
    decided = ok & (verdicts != UNKNOWN)
    votes = np.add.reduceat(decided, starts, axis=1, dtype=np.int64)
    accepted = np.add.reduceat(decided & (verdicts == 1), starts, axis=1, dtype=np.int64)
    majority = np.where(votes, 2 * accepted > votes, UNKNOWN)
    scored = ok & ~np.isnan(score)
    with np.errstate(invalid="ignore"):
        mean = np.add.reduceat(np.where(scored, score, 0.0), starts) / np.add.reduceat(
            scored, starts, dtype=np.int64
        )
    values = np.where(merged, majority, verdicts[:, chosen]).astype(np.int8)
    return values, np.where(merged, mean, score[chosen]), chosen


class TrajectoryGroup(NamedTuple):
    """A benchmark or OVERALL, an agent or ALL_AGENTS."""

    benchmark: str
    agent: str

    def members(self, reference: ReferenceLabels) -> Bools:
        """Which trajectories of the reference belong to it, (T,)."""
        if (known := reference.members.get(self)) is not None:
            return known
        chosen = np.ones(len(reference.benchmark), dtype=bool)
        if self.benchmark != OVERALL:
            chosen &= reference.benchmark == reference.benchmarks.index(self.benchmark)
        if self.agent != ALL_AGENTS:
            chosen &= reference.agent == reference.agents.index(self.agent)
        chosen.flags.writeable = False  # it is every judge's
        reference.members[self] = chosen
        return chosen


def groups(reference: ReferenceLabels, among: Bools | None = None) -> list[TrajectoryGroup]:
    """Of the trajectories ``among`` (T,) the reference's, all without it: known benchmarks in the
    paper's order, others by name, then all of them; of each first all agents, then one by one."""
    chosen = slice(None) if among is None else among
    pairs = set(
        zip(reference.benchmark[chosen].tolist(), reference.agent[chosen].tolist(), strict=True)
    )
    agents: dict[str, set[str]] = {}
    for benchmark, agent in pairs:
        agents.setdefault(reference.benchmarks[benchmark], set()).add(reference.agents[agent])
    known = [benchmark for benchmark in BENCHMARKS if benchmark in agents]
    ordered = [*known, *sorted(set(agents) - set(known)), OVERALL]
    agents[OVERALL] = set().union(*agents.values())
    return [
        TrajectoryGroup(benchmark, agent)
        for benchmark in ordered
        for agent in (ALL_AGENTS, *sorted(agents[benchmark]))
    ]


@dataclass(frozen=True, eq=False)
class GroupObservations:
    """What one row of scores is computed from: a judge's observations of a label in a group, from
    which ``unsure`` labels are left out."""

    judge: str
    group: TrajectoryGroup
    label: LabelName
    observations: Observations
    unsure: int = 0


Training = Mapping[str, Collection[TrajectoryKey]]

"""Judge -> the trajectories that it was trained on."""


def trained_on(
    manifest: Mapping[str, Any], judgments: Iterable[Judgment]
) -> dict[str, set[TrajectoryKey]]:
    """Find those of a run's judgments that its manifest names as training data."""
    hashes = set(manifest.get("training_keys") or ())
    keys: dict[str, set[TrajectoryKey]] = {}
    for judgment in judgments if hashes else ():
        if key_hash(judgment.key) in hashes:
            keys.setdefault(judgment.judge, set()).add(judgment.key)
    return keys


def without_training(judgments: Iterable[Judgment], training: Training) -> JudgmentTable:
    """Leave out the judgments on training data."""
    table = JudgmentTable.of(judgments)
    kept = np.ones(len(table), dtype=bool)
    for judge, keys in training.items():
        kept &= ~table.of_judge(judge) | (places_among(table.keys, KeyColumns.of(keys)) < 0)
    return table.at(kept)


def on_training_set(judge: str, count: int) -> Iterator[str]:
    """Say that they were left out."""
    if count:
        yield (
            f"{judge}: {count_of(count, 'trajectory')} left out, because it was trained on them; "
            "trajudge judges train --cross-fit DIR judges each by a model that was not"
        )


def included(training: Training) -> Iterator[str]:
    """Warn that they were not."""
    for judge, keys in training.items():
        yield (
            f"warning: {judge} was trained on {len(keys)} of the trajectories that it is scored "
            "on: its metrics are not those of new trajectories"
        )
