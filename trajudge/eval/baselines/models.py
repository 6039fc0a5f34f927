"""The trained baselines: a regression on the words of the answer, and one on numbers of the run.

Both are scikit-learn's logistic regression and neither sees a page, the goal or the reward. A run
is accepted from the share of successes among the training runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.agentrewardbench import family_of
from trajudge.annotations.model import Labels
from trajudge.eval.scoring.records import Label
from trajudge.eval.stats.blas import one_thread
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.judges.methods.telemetry_judge import features
from trajudge.judges.methods.telemetry_training import folds_of, predicted
from trajudge.trajectories.model import Trajectory, TrajectoryKey

TFIDF = "tfidf-answer"
TELEMETRY = "telemetry"

# Stands for the answer of a run that gave none, so that its absence is a word like any other.
_NO_ANSWER = "noanswergiven"
_MOST_TERMS = 20_000
# So that equal probabilities stay equal wherever the last digits of a sum differ.
_DIGITS = 9


class Examples(NamedTuple):
    """n labelled runs in the order of keys: ``answers`` as text, ``rows`` (n, features), ``labels``
    and ``groups`` (n,), which are tasks."""

    keys: tuple[TrajectoryKey, ...]
    answers: tuple[str, ...]
    rows: Floats
    labels: Bools
    groups: NDArray[np.str_]

    def at(self, places: Ints | NDArray[np.intp]) -> Examples:
        """Keep those at these places."""
        return Examples(
            tuple(self.keys[place] for place in places),
            tuple(self.answers[place] for place in places),
            self.rows[places],
            self.labels[places],
            self.groups[places],
        )


class BaselinePredictions(NamedTuple):
    """P(success) of n runs, and the ``thresholds`` (n,) from which on each is accepted."""

    probabilities: Floats
    thresholds: Floats


Fit = Callable[[Examples, Examples], Floats]
"""Fit on the first, return P(success) of the second (n,)."""


def examples_of(
    runs: Iterable[Trajectory], labels: Labels, question: Label = "success"
) -> Examples:
    """Keep the runs with a label of ``question``, each trajectory once."""
    by_key = {run.key: run for run in runs}
    found = [
        (run, bool(getattr(labels[run.key], question)))
        for run in sorted(by_key.values(), key=lambda run: run.key.order)
        if getattr(labels.get(run.key), question, None) is not None
    ]
    return Examples(
        keys=tuple(run.key for run, _ in found),
        answers=tuple((run.answer or "").strip() or _NO_ANSWER for run, _ in found),
        rows=np.array([features(run) for run, _ in found], dtype=float),
        labels=np.array([success for _, success in found], dtype=bool),
        groups=np.array(
            [f"{run.key.benchmark}/{family_of(run.key)}" for run, _ in found], dtype=str
        ),
    )


def has_answers(examples: Examples) -> bool:
    """Tell whether any run gave an answer."""
    return any(answer != _NO_ANSWER for answer in examples.answers)


def fit_tfidf(train: Examples, test: Examples) -> Floats:
    """Regress on the TF-IDF of the answer's words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    terms = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=_MOST_TERMS)
    model = LogisticRegression(max_iter=1000).fit(terms.fit_transform(train.answers), train.labels)
    return np.asarray(model.predict_proba(terms.transform(test.answers))[:, 1])


def fit_telemetry(train: Examples, test: Examples) -> Floats:
    """Regress on the telemetry judge's features."""
    return predicted(train.rows, train.labels, test.rows)


TRAINED: dict[str, Fit] = {TFIDF: fit_tfidf, TELEMETRY: fit_telemetry}


def trained_on_others(name: str, train: Examples, test: Examples) -> BaselinePredictions:
    """Predict ``test`` by the baseline ``name`` trained on ``train``, which has both labels."""
    with one_thread():
        found = np.round(TRAINED[name](train, test), _DIGITS)
    return BaselinePredictions(found, np.full(len(found), train.labels.mean()))


def cross_fitted_predictions(
    name: str, examples: Examples, rng: np.random.Generator, folds: int
) -> BaselinePredictions:
    """Predict every run by a model that saw nothing of its task.

    Fewer folds where fewer tasks have a label of each kind. Raises ValueError below two.
    """
    found = BaselinePredictions(np.zeros(len(examples.labels)), np.zeros(len(examples.labels)))
    count = min(folds, fewest_tasks(examples))
    for train, test in folds_of(examples.labels, examples.groups, rng, count):
        part = trained_on_others(name, examples.at(train), examples.at(test))
        found.probabilities[test], found.thresholds[test] = part
    return found


def fewest_tasks(examples: Examples) -> int:
    """Count the tasks that have a run of the rarer kind of label."""
    kinds = (examples.groups[examples.labels], examples.groups[~examples.labels])
    return min(len(set(tasks.tolist())) for tasks in kinds)
