"""Training the telemetry judge: pure functions over arrays; tasks are never on both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trajudge.judges.methods.telemetry import FEATURES, TelemetryModel

_LEAST_ACCEPTED = 10


def fit(
    rows: NDArray[np.float64],
    labels: NDArray[np.bool_],
    groups: NDArray[np.str_],
    rng: np.random.Generator,
    *,
    names: Sequence[str] = FEATURES,
    target_precision: float = 0.85,
) -> TelemetryModel:
    """Fit the model on ``rows`` (n, len(FEATURES)), ``labels`` (n,) and ``groups`` (n,); ``names``
    are the features to use.

    The threshold is the lowest at which predictions across folds, no group on both sides, reach
    the precision that is aimed at. Raises ValueError if the labels are of one kind.
    """
    columns = [FEATURES.index(name) for name in names]
    chosen = rows[:, columns]
    held_out = out_of_fold(chosen, labels, groups, rng)
    means, scales, weights, intercept = _regression(chosen, labels)
    return TelemetryModel(
        features=tuple(names),
        means=tuple(means.tolist()),
        scales=tuple(scales.tolist()),
        weights=tuple(weights.tolist()),
        intercept=intercept,
        threshold=_threshold(held_out, labels, target_precision),
        target_precision=target_precision,
        trained_on=len(labels),
    )


def folds_of(
    labels: NDArray[np.bool_], groups: NDArray[np.str_], rng: np.random.Generator, count: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Split into ``count`` folds of (train, test) positions: no group on both sides, labels spread
    evenly."""
    from sklearn.model_selection import StratifiedGroupKFold  # noqa: PLC0415

    seed = int(rng.integers(2**31))
    split = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    return list(split.split(np.zeros((len(labels), 1)), labels, groups))


def out_of_fold(
    rows: NDArray[np.float64],
    labels: NDArray[np.bool_],
    groups: NDArray[np.str_],
    rng: np.random.Generator,
    count: int = 5,
) -> NDArray[np.float64]:
    """Predict P(success) of every row (n,) by a regression trained without its group.

    Fewer folds where fewer groups have a label of each kind, so that every training part has both.
    Raises ValueError if only one group has one of the kinds.
    """
    probabilities = np.zeros(len(labels))
    rarest = min(len(set(groups[labels == kind])) for kind in (True, False))
    for train, test in folds_of(labels, groups, rng, min(count, rarest)):
        probabilities[test] = predicted(rows[train], labels[train], rows[test])
    return probabilities


def predicted(
    train: NDArray[np.float64], labels: NDArray[np.bool_], rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Predict P(success) of ``rows`` (n, d) by a regression on ``train`` (m, d) and its ``labels``
    (m,); a number that a run does not tell counts as the mean."""
    from scipy.special import expit  # noqa: PLC0415

    means, scales, weights, intercept = _regression(train, labels)
    standardised = np.nan_to_num((rows - means) / scales, nan=0.0)
    return np.asarray(expit(standardised @ weights + intercept))


def _regression(
    rows: NDArray[np.float64], labels: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Fit a regression; return means, scales, weights (d,) and intercept."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    known = np.isfinite(rows)
    count = np.maximum(1, known.sum(axis=0))
    means = np.where(known, rows, 0).sum(axis=0) / count
    centred = np.where(known, rows - means, 0)
    scales = np.sqrt((centred**2).sum(axis=0) / count)
    scales[scales == 0] = 1
    model = LogisticRegression(C=0.3, max_iter=2000).fit(centred / scales, labels)
    return means, scales, model.coef_[0], float(model.intercept_[0])


def _threshold(
    probabilities: NDArray[np.float64], labels: NDArray[np.bool_], target: float
) -> float:
    """Find the lowest probability from which on precision is at least ``target`` (above 1:
    none)."""
    order = np.argsort(-probabilities, kind="stable")
    accepted = np.arange(1, len(order) + 1)
    reached = np.cumsum(labels[order]) / accepted >= target
    places = np.flatnonzero(reached & (accepted >= _LEAST_ACCEPTED))
    return float(probabilities[order[places[-1]]]) if len(places) else 1.01
