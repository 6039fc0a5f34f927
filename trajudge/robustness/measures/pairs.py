"""Verdicts on runs and on their perturbed variants, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.agentrewardbench import family_of
from trajudge.judges.model import Judgment, Status
from trajudge.robustness.attacked import VariantLine
from trajudge.robustness.model import LabelQuestion, Relation
from trajudge.trajectories.model import TrajectoryKey

IDENTITY = "identity"


class RunVerdict(NamedTuple):
    """What a judge said of a run: ``success`` None where it gave no verdict, the mean of its
    scores, the requests that it sent (their hashes), the replies that it got, and its reasons."""

    success: bool | None
    score: float | None = None
    requests: frozenset[str] = frozenset()
    replies: tuple[str, ...] = ()
    reasoning: str = ""


Verdicts = Mapping[TrajectoryKey, RunVerdict]


class PairDetails(NamedTuple):
    """What pairs tell beside the verdicts: scores ``before`` and ``after`` (N,), NaN where there is
    none; ``unseen``: the prompts are byte by byte those of the source (N,); what the judge said of
    each (N,)."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    unseen: NDArray[np.bool_]
    clean: tuple[RunVerdict, ...]
    perturbed: tuple[RunVerdict, ...]


class PerturbedPairs(NamedTuple):
    """One perturbation's variants: ``clean`` and ``perturbed`` verdicts as 1, 0 or NaN (the judge
    gave none), the ``truth`` of the source as 1, 0 or NaN (not known), the task of each as a number
    from 0 (``cluster``), and its source. All (N,). ``is_drawn_again``: the same prompt, of which
    the judge was asked once more."""

    name: str
    relation: Relation
    clean: NDArray[np.float64]
    perturbed: NDArray[np.float64]
    truth: NDArray[np.float64]
    cluster: NDArray[np.int64]
    sources: tuple[TrajectoryKey, ...]
    details: PairDetails | None = None
    is_drawn_again: bool = False

    @property
    def benchmark(self) -> NDArray[np.str_]:
        """The benchmark of each (N,)."""
        return np.array([source.benchmark for source in self.sources], str)


class PairRow(NamedTuple):
    """What was said of a source and of one variant of it; ``truth`` is the source's, ``cluster``
    the number of its task."""

    source: TrajectoryKey
    cluster: int
    truth: float | None
    clean: RunVerdict
    perturbed: RunVerdict


def verdicts_of(judgments: Iterable[Judgment]) -> Verdicts:
    """Return one judge's verdict on each run: the majority of its samples, a tie is no success.

    None where no sample has one: a failure is never a "no".
    """
    by_key: dict[TrajectoryKey, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        by_key[judgment.key].append(judgment)
    return {key: verdict_of(made) for key, made in by_key.items()}


def verdict_of(judgments: Sequence[Judgment]) -> RunVerdict:
    """Return what a judge said of one run in these judgments: the majority."""
    told = [one for one in judgments if one.status is Status.OK and one.success is not None]
    scores = [one.score for one in told if one.score is not None]
    return RunVerdict(
        2 * sum(one.success is True for one in told) > len(told) if told else None,
        sum(scores) / len(scores) if scores else None,
        frozenset(call.request for one in judgments for call in one.calls),
        tuple(call.text for one in judgments for call in one.calls),
        next((one.reasoning for one in told if one.reasoning), ""),
    )


def perturbed_pairs(variants: Sequence[VariantLine], verdicts: Verdicts) -> list[PerturbedPairs]:
    """Return the pairs of each perturbation, in the order of the variants.

    The clean verdict is that on the source, else that on its identity. Variants of which either
    side was not asked are left out; a judge that was asked and failed is NaN.
    """
    identity = {one.of: one.key for one in variants if one.perturbation == IDENTITY}
    clean = {
        one.of: verdicts[place]
        for one in variants
        for place in (identity.get(one.of, one.of), one.of)
        if place in verdicts
    }
    truth = _truth(variants)
    tasks = {(one.of.benchmark, family_of(one.of)): 0 for one in variants}
    number = {task: place for place, task in enumerate(sorted(tasks))}
    by_name: dict[str, list[VariantLine]] = defaultdict(list)
    for one in variants:
        if one.key in verdicts and one.of in clean:
            by_name[one.perturbation].append(one)

    def row(one: VariantLine) -> PairRow:
        cluster = number[one.of.benchmark, family_of(one.of)]
        return PairRow(one.of, cluster, truth.get(one.of), clean[one.of], verdicts[one.key])

    return [
        side_by_side(
            name,
            lines[0].relations[LabelQuestion.SUCCESS],
            list(map(row, lines)),
            is_drawn_again=all(one.sample and one.of in verdicts for one in lines),
        )
        for name, lines in by_name.items()
    ]


def side_by_side(
    name: str, relation: Relation, rows: Sequence[PairRow], *, is_drawn_again: bool = False
) -> PerturbedPairs:
    """Return the pairs of one perturbation, in the order of the rows."""
    return PerturbedPairs(
        name,
        relation,
        _numbers([one.clean.success for one in rows]),
        _numbers([one.perturbed.success for one in rows]),
        _numbers([one.truth for one in rows]),
        np.array([one.cluster for one in rows]),
        tuple(one.source for one in rows),
        _details([one.clean for one in rows], [one.perturbed for one in rows]),
        is_drawn_again,
    )


def runs_as_they_were(everything: Sequence[PerturbedPairs]) -> PerturbedPairs:
    """Return every source once, its clean verdict as both."""
    whole = [
        np.concatenate(columns) for columns in zip(*(one[2:6] for one in everything), strict=True)
    ]
    sources = [source for one in everything for source in one.sources]
    first = {source: place for place, source in reversed(list(enumerate(sources)))}
    places = sorted(first.values())
    clean, _, truth, cluster = (column[places] for column in whole)
    kept = tuple(sources[place] for place in places)
    return PerturbedPairs(IDENTITY, Relation.KEEP, clean, clean, truth, cluster, kept)


def _truth(variants: Sequence[VariantLine]) -> dict[TrajectoryKey, bool]:
    """Return the truth of the sources, as each variant tells, or those that keep it."""
    told = {}
    for one in variants:
        truth = one.truth.get(LabelQuestion.SUCCESS)
        if one.source_truth is not None:
            told[one.of] = one.source_truth
        elif one.relations.get(LabelQuestion.SUCCESS) is Relation.KEEP and truth is not None:
            told[one.of] = truth
    return told


def _details(clean: Sequence[RunVerdict], perturbed: Sequence[RunVerdict]) -> PairDetails:
    both = zip(clean, perturbed, strict=True)
    return PairDetails(
        _numbers([one.score for one in clean]),
        _numbers([one.score for one in perturbed]),
        np.array([bool(a.requests) and a.requests == b.requests for a, b in both], bool),
        tuple(clean),
        tuple(perturbed),
    )


def _numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else float(value) for value in values])
