"""Leave one benchmark out: what was trained or chosen on the other benchmarks, judging this one.

A baseline that was fitted across the tasks of a benchmark may know the benchmark. Here the trained
baselines, the choice among judges and the threshold on a judge's score see no label of the
benchmark that they are scored on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.annotations.model import Labels
from trajudge.eval.baselines.models import (
    TFIDF,
    TRAINED,
    Examples,
    examples_of,
    fewest_tasks,
    has_answers,
    trained_on_others,
)
from trajudge.eval.data.index.labels import refuse_unequal
from trajudge.eval.scoring.observations import one_per_trajectory
from trajudge.eval.scoring.records import Label
from trajudge.eval.stats.interval import Bools, Floats
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.util.errors import UserError

BEST = "best-judge"
Truth = Mapping[TrajectoryKey, bool]
_FEWEST_TASKS = 2


class Transferred(NamedTuple):
    """Judgments of methods that saw no label of the benchmark they judge, and what was chosen."""

    judgments: tuple[Judgment, ...]
    remarks: tuple[str, ...]


def transferred(
    runs: Iterable[Trajectory],
    judgments: Sequence[Judgment],
    labels: Labels,
    question: Label = "success",
) -> Transferred:
    """Judge every benchmark by what the others teach.

    ``telemetry`` and ``tfidf-answer`` are trained on the runs of the others; ``best-judge`` is the
    judge with the highest F1 on them, and ``JUDGE at its threshold`` a judge whose threshold on its
    score has the highest F1 there. Raises UserError for fewer than two benchmarks.
    """
    refuse_unequal(labels, "--transfer")
    known: Truth = {
        key: value for key in labels if (value := getattr(labels[key], question)) is not None
    }
    examples = examples_of(runs, labels, question)
    by_judge = _by_judge(judgments, known)
    names = {benchmark_of(key) for key in examples.keys}
    names |= {benchmark_of(one.key) for mine in by_judge.values() for one in mine}
    if len(names) < 2:
        raise UserError(
            f"--transfer leaves one benchmark out, and there are labels of {len(names)}: name runs "
            "on several"
        )
    found: list[Judgment] = []
    remarks: list[str] = []
    for benchmark in sorted(names):
        found += _trained(benchmark, examples, question, remarks)
        found += _best(benchmark, by_judge, known, question, remarks)
        found += _at_threshold(benchmark, by_judge, known, question)
    return Transferred(tuple(found), tuple(remarks))


def _by_judge(judgments: Sequence[Judgment], known: Truth) -> dict[str, list[Judgment]]:
    """Return one judgment per labelled trajectory of every judge, judges by name."""
    found: dict[str, list[Judgment]] = {}
    for one in judgments:
        if one.key in known:
            found.setdefault(one.judge, []).append(one)
    return {judge: one_per_trajectory(found[judge]) for judge in sorted(found)}


def _trained(
    benchmark: str, examples: Examples, question: Label, remarks: list[str]
) -> Iterator[Judgment]:
    here = np.array([benchmark_of(key) == benchmark for key in examples.keys], dtype=bool)
    train, test = examples.at(np.flatnonzero(~here)), examples.at(np.flatnonzero(here))
    if not test.keys:
        return
    if fewest_tasks(train) < _FEWEST_TASKS:
        remarks.append(f"{benchmark}: the other benchmarks have too few tasks of each label")
        return
    for name in TRAINED:
        if name == TFIDF and not (has_answers(train) and has_answers(test)):
            remarks.append(f"{benchmark}: {name} left out, because no run recorded an answer")
            continue
        scores, thresholds = trained_on_others(name, train, test)
        for key, score, threshold in zip(
            test.keys, scores.tolist(), thresholds.tolist(), strict=True
        ):
            answer = {question: score >= threshold}
            yield Judgment(key=key, judge=name, status=Status.OK, score=score, **answer)


def _best(
    benchmark: str,
    by_judge: Mapping[str, Sequence[Judgment]],
    known: Truth,
    question: Label,
    remarks: list[str],
) -> Iterator[Judgment]:
    """Yield the verdicts here of the judge that is best elsewhere, among those that judged both."""
    elsewhere = {}
    for judge, mine in by_judge.items():
        here, others = _parted(benchmark, mine)
        if here and others:
            accepted = np.array([bool(getattr(one, question)) for one in others])
            truth = np.array([known[one.key] for one in others])
            elsewhere[judge] = float(_f1(accepted[:, None], truth)[0])
    if not elsewhere:
        return
    best = max(elsewhere, key=lambda judge: elsewhere[judge])
    f1 = f"{100 * elsewhere[best]:.1f}"
    remarks.append(f"{benchmark}: {best} is the best of {len(elsewhere)} on the others (F1 {f1})")
    for one in _parted(benchmark, by_judge[best])[0]:
        yield one.model_copy(update={"judge": BEST})


def _at_threshold(
    benchmark: str,
    by_judge: Mapping[str, Sequence[Judgment]],
    known: Truth,
    question: Label,
) -> Iterator[Judgment]:
    """Yield a judge's scores here, accepted from the threshold that is best elsewhere; only success
    has a score."""
    for judge, mine in by_judge.items() if question == "success" else ():
        here, others = _parted(benchmark, [one for one in mine if one.score is not None])
        truth = np.array([known[one.key] for one in others], dtype=bool)
        if not here or not truth.any():
            continue
        threshold = _best_threshold(np.array([one.score for one in others], dtype=float), truth)
        for one in here:
            told = {"judge": f"{judge} at its threshold", "success": (one.score or 0) >= threshold}
            yield one.model_copy(update=told)


def _best_threshold(scores: Floats, truth: Bools) -> float:
    """Find the score from which on acceptance has the highest F1; of equals the highest."""
    levels = np.unique(scores)[::-1]
    return float(levels[int(np.argmax(_f1(scores[:, None] >= levels, truth)))])


def _f1(accepted: Bools, truth: Bools) -> Floats:
    """Compute F1 of the columns of ``accepted`` (n, k) beside ``truth`` (n,); 0 without any
    success."""
    hits = (accepted & truth[:, None]).sum(axis=0)
    return np.asarray(2 * hits / np.maximum(accepted.sum(axis=0) + truth.sum(), 1))


def _parted(benchmark: str, judgments: Sequence[Judgment]) -> tuple[list[Judgment], list[Judgment]]:
    """Part the judgments on the benchmark from those on the others."""
    here = [one for one in judgments if benchmark_of(one.key) == benchmark]
    return here, [one for one in judgments if benchmark_of(one.key) != benchmark]
