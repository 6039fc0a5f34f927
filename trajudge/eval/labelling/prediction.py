"""How likely each trajectory is a success, by what judges and rule say of it.

Before there are labels the share of votes has to do. Afterwards a ridge-penalised logistic
regression on verdicts, scores, rule and benchmark is fitted to labels; those that it predicts are
never among those that it was fitted to (``cross_fitted``), so that an estimate corrected by its
residuals stays unbiased however wrong the model is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trajudge.stats.intervals import Bools, Floats, Ints

FOLDS = 5
PENALTY = 2.0
_STEPS = 25


def vote_share(votes: Floats) -> Floats:
    """Estimate the probability of success (N,) from votes (N, V) of 1, 0 or nan (none), with one
    vote of one half added."""
    present = ~np.isnan(votes)
    return np.asarray((np.nansum(votes, axis=1) + 0.5) / (present.sum(axis=1) + 1))


def features(votes: Floats, scores: Floats, groups: Ints) -> Floats:
    """Make the columns (N, F) of the regression: votes and scores as -1 to 1 with 0 for none, the
    share of votes as log-odds, an indicator of each group (a number for each trajectory)."""
    signed = [np.nan_to_num(2 * part - 1) for part in (votes, scores)]
    share = vote_share(votes)
    odds = np.log(share / (1 - share))[:, None]
    indicators = np.eye(int(groups.max()) + 1)[groups] if len(groups) else np.empty((0, 0))
    return np.hstack([*signed, odds, indicators])


def fit_logistic(columns: Floats, labels: Bools, weights: Floats) -> Floats:
    """Fit coefficients (1 + F,), the intercept first and unpenalised, by penalised Newton steps.

    ``weights`` (n,) are scaled to a mean of 1. With labels of one kind alone the intercept stays
    finite by half a label of the other kind.
    """
    design = np.hstack([np.ones((len(columns), 1)), columns])
    weights = weights / weights.mean()
    target = (labels * len(labels) + 0.5) / (len(labels) + 1)
    penalty = np.r_[1e-6, np.full(columns.shape[1], PENALTY)]
    coefficients = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        p = _logistic(design @ coefficients)
        gradient = design.T @ (weights * (target - p)) - penalty * coefficients
        curvature = (design.T * (weights * p * (1 - p))) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        coefficients += step * min(1.0, 4 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    return coefficients


def predict(columns: Floats, coefficients: Floats) -> Floats:
    """Predict probabilities (N,)."""
    return _logistic(coefficients[0] + columns @ coefficients[1:])


class DrawnLabels(NamedTuple):
    """The labels (n,) of the ``places`` (n,) that were drawn with ``chances`` (n,)."""

    places: Ints
    labels: Bools
    chances: Floats


def cross_fitted(
    columns: Floats, fallback: Floats, drawn: DrawnLabels, rng: np.random.Generator
) -> Floats:
    """Predict every trajectory (N,) by a model that was fitted to the labels of other folds.

    ``fallback`` (N,) is what stands where a fold's complement has fewer than ten labels.
    """
    labelled, labels, weights = drawn.places, drawn.labels, 1 / drawn.chances
    fold = rng.permutation(len(columns)) % FOLDS
    predicted = fallback.copy()
    for number in range(FOLDS):
        use = fold[labelled] != number
        if use.sum() >= 10:
            places = labelled[use]
            coefficients = fit_logistic(columns[places], labels[use], weights[use])
            inside = fold == number
            predicted[inside] = predict(columns[inside], coefficients)
    return predicted


def _logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))))
