"""How the people of a queue label: agreement, pairs, confusion, speed, hidden checks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from trajudge.annotations.labelling.adjudication import SubmittedReading, readings
from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.people import people
from trajudge.annotations.labelling.records import QUESTIONS, QueueItem
from trajudge.annotations.labelling.transfer import queue_annotations
from trajudge.annotations.model import Annotation
from trajudge.eval.analysis.agreement import LabelAgreement, measure_agreement
from trajudge.eval.store.task_goals import read_goals
from trajudge.trajectories.model import TrajectoryKey

_PAUSE = 30 * 60 * 1000
"""Milliseconds after which a gap between two submissions is no work."""


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


def queue_quality(store: LabelStore) -> QueueQuality:
    """Measure a queue by its blind labels. Hidden checks count for people alone, not in the
    agreement."""
    items = dict(store.items())
    gold = {item.key for item in items.values() if item.gold is not None}
    annotations = [each for each in queue_annotations(store) if each.key not in gold]
    everything = readings(store.reading())
    agreements, note = measure_agreement(annotations, read_goals(store.folder), "recorded")
    return QueueQuality(
        agreements,
        _confusion(annotations),
        _pairs(annotations),
        _people(store, items, everything),
        note,
    )


def _opinions(annotations: Sequence[Annotation]) -> Mapping[TrajectoryKey, list[Annotation]]:
    opinions: dict[TrajectoryKey, list[Annotation]] = defaultdict(list)
    for annotation in annotations:
        if annotation.role != "adjudicated":
            opinions[annotation.key].append(annotation)
    return opinions


def _confusion(annotations: Sequence[Annotation]) -> SuccessConfusion:
    counts: Counter[tuple[bool | None, bool | None]] = Counter()
    for several in _opinions(annotations).values():
        if len(several) > 1:
            counts[several[0].success, several[1].success] += 1
    both, first = counts[True, True], counts[True, False]
    second, neither = counts[False, True], counts[False, False]
    unsure = counts.total() - both - first - second - neither
    return SuccessConfusion(both, first, second, neither, unsure)


def _pairs(annotations: Sequence[Annotation]) -> list[AnnotatorPair]:
    both: Counter[tuple[str, str]] = Counter()
    alike: Counter[tuple[str, str]] = Counter()
    for several in _opinions(annotations).values():
        decided = sorted((x.annotator, x.success) for x in several if x.success is not None)
        for one, other in combinations(decided, 2):
            both[one[0], other[0]] += 1
            alike[one[0], other[0]] += one[1] == other[1]
    return [AnnotatorPair(*names, both[names], alike[names]) for names in sorted(both)]


def _people(
    store: LabelStore,
    items: Mapping[int, QueueItem],
    everything: Mapping[int, Sequence[SubmittedReading]],
) -> list[AnnotatorRecord]:
    times: dict[int, list[int]] = defaultdict(list)
    checks: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for number, of_item in everything.items():
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
        for person in people(store)
        if times[person.id]
    ]


def _is_right(answer: str, truth: object) -> bool:
    return answer == ({True: "yes", False: "no"}[truth] if isinstance(truth, bool) else str(truth))


def _per_hour(moments: Sequence[int]) -> float | None:
    ordered = sorted(moments)
    gaps = [b - a for a, b in pairwise(ordered) if b - a <= _PAUSE]
    return len(gaps) / (sum(gaps) / 3_600_000) if gaps and sum(gaps) else None
