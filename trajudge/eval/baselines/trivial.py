"""Judge runs by the trivial baselines: always-fail, the agent's own claim, its answer's words and
the numbers of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.baselines.models import (
    TELEMETRY,
    TFIDF,
    Examples,
    cross_fitted_predictions,
    examples_of,
    fewest_tasks,
    has_answers,
)
from trajudge.eval.scoring.records import Label
from trajudge.judges.methods.baselines import declared_infeasible, gives_up
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey

ALWAYS_FAIL = "always-fail"
CLAIM = "claim-of-success"
BASELINES = (ALWAYS_FAIL, CLAIM, TFIDF, TELEMETRY)

_FEWEST_TASKS = 2


class TrivialBaselines(NamedTuple):
    """One judgment per baseline and labelled run, by baseline and key, and why a baseline has
    none."""

    judgments: tuple[Judgment, ...] = ()
    notes: tuple[str, ...] = ()


def trivial_baselines(
    runs: Iterable[Trajectory],
    labels: Labels,
    *,
    names: Sequence[str] = BASELINES,
    question: Label = "success",
    folds: int = 5,
    seed: int = 0,
) -> TrivialBaselines:
    """Judge every run with an expert's label of ``question`` by the baselines ``names``.

    ``tfidf-answer`` and ``telemetry`` are fitted across ``folds`` folds in which no task is on both
    sides, so that no verdict rests on a label of its own task; their score is P(success). The same
    runs, labels and seed give the same bytes.
    """
    kept = {run.key: run for run in runs}
    examples = examples_of(kept.values(), labels, question)
    if not examples.keys:
        return TrivialBaselines(notes=(f"baselines: no run has an expert's label of {question}",))
    judgments: list[Judgment] = []
    notes: list[str] = []
    for name in names:
        if problem := _problem(name, examples):
            notes.append(f"{name}: {problem}")
        elif name == ALWAYS_FAIL:
            judgments += (_judgment(key, name, question, verdict=False) for key in examples.keys)
        elif name == CLAIM:
            judgments += (
                _judgment(key, name, question, verdict=claims_success(kept[key]))
                for key in examples.keys
            )
        else:
            rng = np.random.default_rng(seed)
            judgments += _cross_fitted(name, question, examples, rng, folds)
    return TrivialBaselines(tuple(judgments), tuple(notes))


def claims_success(run: Trajectory) -> bool:
    """Tell whether the agent's own last word is that it succeeded: it gave an answer that neither
    declares the task infeasible nor says that something could not be done."""
    answer = (run.answer or "").strip()
    return bool(answer) and not gives_up(answer) and not declared_infeasible(run)


def _problem(name: str, examples: Examples) -> str:
    """Say why a baseline cannot judge these runs, "" if it can."""
    if name in (CLAIM, TFIDF) and not has_answers(examples):
        return "left out, because no run recorded an answer"
    if name in (TFIDF, TELEMETRY) and fewest_tasks(examples) < _FEWEST_TASKS:
        return "left out, because fewer than two tasks have a run of each label"
    return ""


def _cross_fitted(
    name: str, question: Label, examples: Examples, rng: np.random.Generator, folds: int
) -> Iterator[Judgment]:
    found = cross_fitted_predictions(name, examples, rng, folds)
    for key, score, threshold in zip(
        examples.keys, found.probabilities.tolist(), found.thresholds.tolist(), strict=True
    ):
        yield _judgment(key, name, question, verdict=score >= threshold, score=score)


def _judgment(
    key: TrajectoryKey, judge: str, question: Label, *, verdict: bool, score: float | None = None
) -> Judgment:
    answer = {question: verdict}
    return Judgment(key=key, judge=judge, status=Status.OK, score=score, **answer)
