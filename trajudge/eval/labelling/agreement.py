"""How far annotators agree: raw agreement, Cohen's kappa and Krippendorff's alpha by label; and how
the people of a queue label: pairs, confusion, speed, hidden checks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from trajudge.annotations import parse_labels
from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of, family_of
from trajudge.annotations.model import Label, Role, opinions_by_trajectory
from trajudge.annotations.queue import QUESTIONS, LabelQueue, Question, QueueItem
from trajudge.annotations.queue_files import queue_annotations
from trajudge.eval.reporting.sentences import UNDEFINED, benchmark_name, percent
from trajudge.eval.scoring.records import OVERALL, Limits
from trajudge.eval.settings import TaskId
from trajudge.eval.store.labels import weights_of
from trajudge.eval.store.task_goals import TaskGoals, goal_note, read_goals, task_units
from trajudge.stats.agreement import Scale, annotator_agreement
from trajudge.stats.intervals import Interval, defined
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.tables import Table

AnnotatedLabel = Question
Coefficient = Literal["raw", "kappa", "alpha"]

SCALES: dict[AnnotatedLabel, Scale] = {
    "success": "nominal",
    "side_effect": "nominal",
    "repetition": "nominal",
    "optimality": "ordinal",
}
COEFFICIENTS: tuple[Coefficient, ...] = ("raw", "kappa", "alpha")
_NOTHING = np.nan
_PAUSE = 30 * 60 * 1000
"""Milliseconds after which a gap between two submissions is no work."""


class LabelAgreement(Record):
    """Agreement on one label over the ``n`` trajectories of ``tasks`` tasks that two annotators
    labelled; ``unsure`` more have a second opinion but not two values.

    ``raw`` is the share of equal labels and ``kappa`` Cohen's, unweighted, both of the first two
    opinions; ``alpha`` is Krippendorff's over all opinions, ordinal for optimality. None where
    undefined. ``intervals`` are 95 % limits over tasks, ``no_interval`` says why one is missing.
    """

    label: AnnotatedLabel
    benchmark: str
    n: int
    tasks: int
    unsure: int
    raw: float | None
    kappa: float | None
    alpha: float | None
    intervals: dict[Coefficient, Limits] = Field(default_factory=dict)
    no_interval: dict[Coefficient, str] = Field(default_factory=dict)


def label_agreements(annotations: Iterable[Label]) -> list[LabelAgreement]:
    """Measure agreement label by label, over all benchmarks and, where there are several, in each.

    The primary opinion comes first, the others in the order given; what was adjudicated is no
    opinion of its own, nor is what an annotator corrected. Trajectories that were drawn with
    unequal probabilities are weighted. Empty where no trajectory has two opinions. Raises UserError
    where only some tell how they were drawn.
    """
    opinions = _opinions(annotations)
    repeated = {key: _in_order(labels) for key, labels in opinions.items() if len(labels) > 1}
    present = {benchmark_of(key) for key in repeated}
    known = [name for name in BENCHMARKS if name in present]
    ordered = [*known, *sorted(present - set(known))]
    return [
        _agreement(label, group, repeated)
        for label in SCALES
        for group in (*(ordered if len(ordered) > 1 else ()), OVERALL)
        if repeated
    ]


def measure_agreement(
    annotations: Sequence[Label], goals: TaskGoals, task_id: TaskId
) -> tuple[list[LabelAgreement], str]:
    """Measure agreement with the tasks that ``task_id`` (``--task-id``) asks for, and the warning
    that task ids share goals, "" without one. Raises UserError as ``label_agreements``, and for
    "goal" where no goal is known."""
    with task_units(goals, task_id):
        agreements = label_agreements(annotations)
    if task_id == "goal" or not agreements:
        return agreements, ""

    def success() -> tuple[str, str, int] | None:
        overall = [a for a in label_agreements(annotations) if a.benchmark == OVERALL]
        if not overall or overall[0].raw is None:
            return None
        return "agreement on success", _cell(overall[0], "raw"), overall[0].tasks

    return agreements, goal_note(goals, success)


def annotation_goals(spec: str) -> TaskGoals:
    """Read the goals (``goals.jsonl``) in the folder of an ``--annotations`` value: that of a run,
    or of a queue's export. Empty without them. Raises UserError for goals that cannot be read."""
    path = parse_labels(spec).path
    if path is None:
        return {}
    return read_goals(path if path.is_dir() else path.parent)


def _in_order(opinions: Sequence[Label]) -> list[Label]:
    return sorted(opinions, key=lambda annotation: annotation.role is not Role.PRIMARY)


def _agreement(
    label: AnnotatedLabel, group: str, opinions: dict[TrajectoryKey, list[Label]]
) -> LabelAgreement:
    chosen = {k: several for k, several in opinions.items() if group in (OVERALL, benchmark_of(k))}
    table = np.full((max(map(len, chosen.values())), len(chosen)), _NOTHING)
    for unit, opinions_of in enumerate(chosen.values()):
        for annotator, annotation in enumerate(opinions_of):
            value = getattr(annotation, label)
            table[annotator, unit] = _NOTHING if value is None else value
    weights = weights_of({key: several[0] for key, several in chosen.items()})
    benchmarks = [benchmark_of(key) for key in chosen]
    tasks = [f"{name}\0{family_of(key)}" for name, key in zip(benchmarks, chosen, strict=True)]
    agreement = annotator_agreement(
        table,
        tasks,
        benchmarks,
        SCALES[label],
        weights=None if weights is None else np.array([weights[key] for key in chosen]),
    )
    estimates: dict[Coefficient, Interval] = {
        "raw": agreement.raw,
        "kappa": agreement.kappa,
        "alpha": agreement.alpha,
    }
    with_limits = {name: i for name, i in estimates.items() if not np.isnan(i.low[0])}
    return LabelAgreement(
        label=label,
        benchmark=group,
        n=agreement.n,
        tasks=agreement.clusters,
        unsure=len(chosen) - agreement.n,
        raw=_defined(agreement.raw),
        kappa=_defined(agreement.kappa),
        alpha=_defined(agreement.alpha),
        intervals={name: (float(i.low[0]), float(i.high[0])) for name, i in with_limits.items()},
        no_interval={
            name: "; ".join(i.notes) for name, i in estimates.items() if name not in with_limits
        },
    )


def _defined(interval: Interval) -> float | None:
    return defined(interval.estimate[0])


def agreement_tables(agreements: Sequence[LabelAgreement]) -> list[Table]:
    """Lay out the agreements as one table; raw agreement in percent."""
    head = ("label", "benchmark", "agreement [95 %]", "κ [95 %]", "α [95 %]", "n", "tasks")
    rows = [
        (
            agreement.label.replace("_", " "),
            benchmark_name(agreement.benchmark),
            *(_cell(agreement, name) for name in COEFFICIENTS),
            str(agreement.n),
            str(agreement.tasks),
        )
        for agreement in agreements
    ]
    return [Table("Annotator agreement", head, rows)]


def _cell(agreement: LabelAgreement, name: Coefficient) -> str:
    value, limits = getattr(agreement, name), agreement.intervals.get(name)
    if value is None:
        return UNDEFINED
    shown = [percent(x) if name == "raw" else f"{x:z.3f}" for x in (value, *(limits or ()))]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]" if limits else shown[0]


class SuccessConfusion(NamedTuple):
    """The first two opinions on success: both yes, the first alone, the second alone, both no, and
    pairs of which one is unsure. ``prevalence`` is |both yes - both no| / n and ``bias`` is
    |first alone - second alone| / n, None without pairs."""

    both: int
    first: int
    second: int
    neither: int
    unsure: int

    @property
    def prevalence(self) -> float | None:
        n = sum(self[:4])
        return abs(self.both - self.neither) / n if n else None

    @property
    def bias(self) -> float | None:
        n = sum(self[:4])
        return abs(self.first - self.second) / n if n else None


class AnnotatorPair(NamedTuple):
    """Two people: on how many trajectories both decided success, and how often alike."""

    first: str
    second: str
    n: int
    alike: int


class AnnotatorRecord(NamedTuple):
    """A person's labels, labels per hour of work (None for fewer than two), and of the answers to
    hidden checks how many were right."""

    name: str
    labels: int
    per_hour: float | None
    checks: int
    right: int


class QueueQuality(NamedTuple):
    """All of it, as it stands now; ``note`` warns of task ids with one goal."""

    agreements: list[LabelAgreement]
    confusion: SuccessConfusion
    pairs: list[AnnotatorPair]
    people: list[AnnotatorRecord]
    note: str = ""


def queue_quality(queue: LabelQueue) -> QueueQuality:
    """Measure a queue by its blind labels. Hidden checks count for people alone, not in the
    agreement."""
    items = dict(queue.items())
    gold = {item.key for item in items.values() if item.gold is not None}
    annotations = [each for each in queue_annotations(queue) if each.key not in gold]
    agreements, note = measure_agreement(annotations, read_goals(queue.folder), "recorded")
    return QueueQuality(
        agreements,
        _confusion(annotations),
        _pairs(annotations),
        _people(queue, items),
        note,
    )


def _opinions(annotations: Iterable[Label]) -> dict[TrajectoryKey, list[Label]]:
    """Return the annotators' opinions by trajectory: what was adjudicated is none."""
    return opinions_by_trajectory(one for one in annotations if one.role is not Role.ADJUDICATED)


def _confusion(annotations: Sequence[Label]) -> SuccessConfusion:
    counts: Counter[tuple[bool | None, bool | None]] = Counter()
    for several in _opinions(annotations).values():
        if len(several) > 1:
            counts[several[0].success, several[1].success] += 1
    both, first = counts[True, True], counts[True, False]
    second, neither = counts[False, True], counts[False, False]
    unsure = counts.total() - both - first - second - neither
    return SuccessConfusion(both, first, second, neither, unsure)


def _pairs(annotations: Sequence[Label]) -> list[AnnotatorPair]:
    both: Counter[tuple[str, str]] = Counter()
    alike: Counter[tuple[str, str]] = Counter()
    for several in _opinions(annotations).values():
        decided = sorted((x.annotator, x.success) for x in several if x.success is not None)
        for one, other in combinations(decided, 2):
            both[one[0], other[0]] += 1
            alike[one[0], other[0]] += one[1] == other[1]
    return [AnnotatorPair(*names, both[names], alike[names]) for names in sorted(both)]


def _people(
    queue: LabelQueue,
    items: Mapping[int, QueueItem],
) -> list[AnnotatorRecord]:
    times: dict[int, list[int]] = defaultdict(list)
    checks: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for number, of_item in queue.readings().items():
        truth = items[number].gold or {}
        for reading in of_item:
            times[reading.person].append(reading.at)
            for question in QUESTIONS:
                if question in truth and reading.answers.value(question):
                    checks[reading.person] += 1
                    right[reading.person] += _is_right(
                        reading.answers.value(question), truth[question]
                    )
    return [
        AnnotatorRecord(
            person.name,
            len(times[person.id]),
            _per_hour(times[person.id]),
            checks[person.id],
            right[person.id],
        )
        for person in queue.people()
        if times[person.id]
    ]


def _is_right(answer: str, truth: object) -> bool:
    return answer == ({True: "yes", False: "no"}[truth] if isinstance(truth, bool) else str(truth))


def _per_hour(moments: Sequence[int]) -> float | None:
    ordered = sorted(moments)
    gaps = [b - a for a, b in pairwise(ordered) if b - a <= _PAUSE]
    return len(gaps) / (sum(gaps) / 3_600_000) if gaps and sum(gaps) else None
