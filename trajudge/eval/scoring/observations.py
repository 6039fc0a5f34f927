"""Predictions of judges and the experts' labels as arrays, the groups that tables have rows for,
and what a judge was trained on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import product
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of, family_of
from trajudge.annotations.model import Labels
from trajudge.eval.rungs import RUNGS, WHOLE
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABELS,
    OVERALL,
    RULE_BASED,
    Coverage,
    LabelName,
    Missing,
)
from trajudge.eval.store.labels import LabelColumns, RewardColumns, Rewards
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
        cls, judged: KeyColumns, labels: Labels | LabelColumns, rewards: Rewards
    ) -> ReferenceLabels:
        """Look up the labels and the official rewards of the trajectories that were judged, and
        of those that have a reward. Raises UserError where only some of the labels tell how
        they were drawn."""
        expert, official = LabelColumns.of(labels), RewardColumns.of(rewards)
        keys, place = distinct(joined([judged, official.keys, expert.keys]))
        size, known = len(keys), len(judged) + len(official.keys)
        verdicts = np.full((len(VERDICTS), size), UNKNOWN, dtype=np.int8)
        verdicts[:, place[known:]] = expert.verdicts
        reward = np.full(size, np.nan)
        reward[place[len(judged) : known]] = official.reward
        weight = np.ones(size)
        weight[place[known:]] = expert.weights()
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
            labels={label: verdicts[VERDICTS.index(label)][wanted] for label in LABELS},
            reward=reward[wanted],
            in_run=in_run[wanted],
            judged=where,
            weight=weight[wanted],
        )

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
    def is_weighted(self) -> bool:
        """Tell whether some labels were more likely to be drawn than others."""
        return self.reference.is_weighted

    @property
    def weights(self) -> Floats | None:
        """Return one over the inclusion probability of every trajectory, in proportion to the mean
        over all labels; None where all were drawn alike."""
        return self.reference.weight[self.index] if self.is_weighted else None

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

    def rewarded(self) -> Observations:
        """Keep the trajectories with an official reward."""
        known = ~np.isnan(self.reward)
        return self if known.all() else self.at(known)

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
    """What one ``judge`` predicted, one judgment a trajectory: arrays of one shape (N,) in the
    order of keys.

    ``index`` is the trajectory's in ``reference``; ``status`` indexes STATUSES, ``rung`` RUNGS;
    ``values`` are 1, 0 or UNKNOWN by label; ``scores`` are nan where there is none. ``trained``
    (T,) are the trajectories of the reference that the judge was trained on, of which it has no
    prediction here. ``rows`` are those of the table that were read.
    """

    judge: str
    reference: ReferenceLabels
    index: Codes
    status: NDArray[np.int8]
    rung: NDArray[np.int8]
    values: Mapping[LabelName, NDArray[np.int8]]
    scores: Floats
    trained: Bools
    rows: Ints

    @classmethod
    def of(
        cls,
        judge: str,
        judgments: JudgmentTable,
        reference: ReferenceLabels,
        training: Collection[TrajectoryKey] = (),
    ) -> Predictions:
        """Read what ``judge`` said in ``judgments``, whose trajectories ``reference`` was made of,
        but for those of its ``training``; several samples of a trajectory are one prediction: label
        by label the strict majority of the samples that answered (a tie is a no), and the mean of
        their scores."""
        mine = judgments.of_judge(judge)
        trained = np.zeros(len(reference), dtype=bool)
        if training:
            places = reference.places(KeyColumns.of(training))
            trained[places[places >= 0]] = True
            mine &= ~trained[reference.judged]
        rows = np.flatnonzero(mine)
        order = rows[np.argsort(reference.judged[rows], kind="stable")]
        index = reference.judged[order]
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        values, scores, chosen = judgments.verdicts[:, order], judgments.score[order], order
        if len(starts) < len(order):
            values, scores, first = _majorities(values, scores, judgments.ok()[order], starts)
            chosen = order[first]
        return cls(
            judge=judge,
            reference=reference,
            index=index[starts],
            status=judgments.status[chosen],
            rung=judgments.rung[chosen],
            values={label: values[VERDICTS.index(label)] for label in LABELS},
            scores=scores,
            trained=trained,
            rows=rows,
        )

    @cached_property
    def due(self) -> Bools:
        """Tell which trajectories (T,) the judge had to judge, those of its training included."""
        due = self.reference.in_run | self.trained
        due[self.index] = True
        return due

    @cached_property
    def groups(self) -> list[TrajectoryGroup]:
        """List the groups of the trajectories that are ``due``."""
        return groups(self.reference, self.due)

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
    width = len(reference.agents)
    both = reference.benchmark[chosen].astype(np.int64) * width + reference.agent[chosen]
    codes = (divmod(code, width) for code in np.flatnonzero(np.bincount(both)).tolist())
    pairs = [(reference.benchmarks[code], reference.agents[agent]) for code, agent in codes]
    pairs += [(OVERALL, agent) for agent in sorted({agent for _, agent in pairs})]
    order = [*BENCHMARKS, *sorted({benchmark for benchmark, _ in pairs} - {*BENCHMARKS, OVERALL})]
    listed = []
    for benchmark in [*order, OVERALL]:
        agents = [agent for name, agent in pairs if name == benchmark]
        if agents or benchmark == OVERALL:
            listed += [TrajectoryGroup(benchmark, agent) for agent in (ALL_AGENTS, *agents)]
    return listed


@dataclass(frozen=True, eq=False)
class GroupObservations:
    """What one row of scores is computed from: a judge's observations of a label in a group.

    ``failed`` of its judgments gave no answer; they are left out where ``missing`` is "exclude".
    ``unsure`` labels are left out as well. ``rule`` is the rule-based baseline on the trajectories
    that are ``rewarded``; None of other labels than success, and where a row has no baseline.
    """

    judge: str
    group: TrajectoryGroup
    label: LabelName
    observations: Observations
    failed: int
    unsure: int
    rule: Observations | None

    @cached_property
    def rewarded(self) -> Observations:
        """Keep the trajectories with an official reward."""
        return self.observations.rewarded()


def predictions_by_judge(
    judgments: JudgmentTable, reference: ReferenceLabels, training: Training
) -> list[Predictions]:
    """Read the predictions of every judge, judges by name; arguments as ``Predictions.of``."""
    codes = np.flatnonzero(np.bincount(judgments.judge)).tolist()
    names = sorted(judgments.judges[code] for code in codes)
    return [Predictions.of(name, judgments, reference, training.get(name, ())) for name in names]


def group_observations(
    judges: Sequence[Predictions], missing: Missing, by_agent: bool
) -> list[GroupObservations]:
    """Observe every judge on every label in every group; single agents, unless ``by_agent``, on
    success alone, and not beside the rule. Judges of the same trajectories share the rule's
    observations."""
    cells: list[GroupObservations] = []
    rules: dict[bytes, Observations] = {}
    for judge in judges:
        reference = judge.reference
        observed = {label: judge.observe(label, missing) for label in judge.labels()}
        is_unsure = {
            label: (reference.annotated & (reference.labels[label] == UNKNOWN))[judge.index]
            for label in observed
        }
        for group in judge.groups:
            members = group.members(reference)
            inside = members[judge.index]
            is_detailed = by_agent or group.agent == ALL_AGENTS
            for label, whole in observed.items() if inside.any() else ():
                if not is_detailed and label != "success":
                    continue
                mine = whole.at(members[whole.index])
                failed = int(np.count_nonzero(~mine.answered))
                if missing == "exclude" and failed:
                    mine = mine.at(mine.answered)
                rule = None
                if is_detailed and label == "success" and judge.judge != RULE_BASED:
                    rewarded = mine.rewarded()
                    if rewarded.trajectories not in rules:
                        rules[rewarded.trajectories] = rewarded.as_rule_based()
                    rule = rules[rewarded.trajectories]
                cells.append(
                    GroupObservations(
                        judge=judge.judge,
                        group=group,
                        label=label,
                        observations=mine,
                        failed=failed,
                        unsure=int(np.count_nonzero(is_unsure[label] & inside)),
                        rule=rule,
                    )
                )
    return cells


def coverage(judge: Predictions, by_agent: bool) -> Iterator[Coverage]:
    """Count how the judgments of every group ended, single agents ``by_agent`` alone."""
    reference, due = judge.reference, judge.due & ~judge.trained
    answered = {label: judge.answered(label) for label in judge.labels()}
    positive = {label: gave & (judge.values[label] == 1) for label, gave in answered.items()}
    unlabelled = ~reference.annotated[judge.index]
    for group in judge.groups:
        if not (by_agent or group.agent == ALL_AGENTS):
            continue
        members = group.members(reference)
        inside = members[judge.index]
        ended = np.bincount(judge.status[inside], minlength=len(STATUSES)).tolist()
        cut = np.bincount(judge.rung[inside], minlength=len(RUNGS)).tolist()
        judged = int(inside.sum())
        yield Coverage(
            judge=judge.judge,
            benchmark=group.benchmark,
            agent=group.agent,
            judged=judged,
            statuses={status: n for status, n in zip(STATUSES, ended, strict=True) if n},
            shortened={r: n for r, n in zip(RUNGS, cut, strict=True) if n and r != WHOLE},
            unjudged=int((due & members).sum()) - judged,
            unlabelled=int((inside & unlabelled).sum()),
            training=int((judge.trained & members).sum()),
            verdicts={label: int((inside & gave).sum()) for label, gave in answered.items()},
            positive={label: int((inside & yes).sum()) for label, yes in positive.items()},
        )


@dataclass(frozen=True, eq=False)
class ComparedJudges:
    """The judges by name that are held against each other on a label, over all benchmarks or in
    one, with what each says."""

    benchmark: str
    label: LabelName
    judges: Mapping[str, Observations]


Compared = Literal["overall", "benchmark"]

"""Judges are compared over all benchmarks, or also in each."""


def compared_judges(
    judges: Sequence[Predictions], missing: Missing, compared: Compared | None
) -> Iterator[ComparedJudges]:
    """Yield the judges that were asked for a label on labelled trajectories, two or more, over all
    benchmarks first and by "benchmark" also in each, label by label; nothing if ``compared`` is
    None."""
    if compared is None or len(judges) < 2:
        return
    reference = judges[0].reference
    benchmarks = [group for group in groups(reference) if group.agent == ALL_AGENTS]
    single = benchmarks[:-1] if compared == "benchmark" and len(benchmarks) > 2 else []
    for group, label in product([TrajectoryGroup(OVERALL, ALL_AGENTS), *single], LABELS):
        members = group.members(reference)
        observed = {
            judge.judge: compared_observations(judge, label, missing, members)
            for judge in judges
            if label in judge.labels()
        }
        if (group.benchmark, label) != (OVERALL, "success"):
            observed = {name: some for name, some in observed.items() if len(some)}
        if len(observed) > 1:
            yield ComparedJudges(group.benchmark, label, observed)


def compared_observations(
    judge: Predictions, label: LabelName, missing: Missing, members: Bools | None = None
) -> Observations:
    """Observe a judge that is held against others, of the trajectories ``members`` (T,) of its
    reference, all without it: a failed judgment counts as ``missing`` says, or is left out, as are
    all where none gave an answer."""
    observations = judge.observe(label, missing)
    counted = np.ones(len(observations), dtype=bool)
    if missing == "exclude" or not observations.answered.any():
        counted &= observations.answered
    if members is not None:
        counted &= members[observations.index]
    return observations.at(counted)


def on_the_same(first: Observations, second: Observations) -> tuple[Observations, Observations]:
    """Keep the trajectories of one reference that both hold, in one order."""
    if first.trajectories == second.trajectories:
        return first, second
    _, here, there = np.intersect1d(
        first.index, second.index, assume_unique=True, return_indices=True
    )
    return first.at(here), second.at(there)


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
