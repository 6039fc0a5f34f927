"""A regression over numbers of a run: the numbers, the model as it is kept in a file, and its
training, in which tasks are never on both sides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, isfinite, log1p, nan
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.model import Record, Trajectory
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8
from trajudge.util.validation import refused_value

# Named one by one: whatever else a loader keeps among the telemetry cannot come in.
_TELEMETRY = {
    "input_tokens": "cum_input_tokens",
    "output_tokens": "cum_output_tokens",
    "page_tokens": "max_n_token_axtree_txt",
    "error_tokens": "cum_n_token_last_action_error",
    "agent_seconds": "cum_agent_elapsed",
    "browser_seconds": "cum_step_elapsed",
    "retries": "cum_n_retry",
}
_KINDS = ("click", "fill", "select_option", "scroll", "goto", "go_back", "tab_focus", "noop")
_MESSAGES, _INFEASIBLE = ("send_msg_to_user", "answer"), "report_infeasible"
FEATURES = (
    *("steps", "budget_exhausted", "crashed"),
    *(f"log_{name}" for name in _TELEMETRY),
    *("distinct_share", "longest_repeat", "kinds"),
    *(f"share_{kind}" for kind in _KINDS),
    *("ends_with_message", "ends_infeasible", "log_message_length"),
)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)")
_LEAST_ACCEPTED = 10


def features(trajectory: Trajectory) -> list[float]:
    """Compute one number for every name of ``FEATURES``; NaN where the run does not record it.
    Counts and seconds as the logarithm of 1 + x."""
    actions = [step.action.strip() for step in trajectory.steps if step.action]
    kinds = _kinds(actions)
    counted, count, last = Counter(kinds), max(1, len(actions)), "".join(kinds[-1:])
    recorded = [trajectory.telemetry.get(name, nan) for name in _TELEMETRY.values()]
    message = message_to_user(actions[-1]) if actions else None
    truncated = trajectory.truncated
    return [
        log1p(len(actions)),
        nan if truncated is None else float(truncated),
        trajectory.telemetry.get("error", nan),
        *[log1p(value) if value >= 0 else nan for value in recorded],
        len(set(actions)) / count,
        log1p(_longest_repeat(actions)),
        float(len(counted)),
        *[counted[kind] / count for kind in _KINDS],
        float(last in _MESSAGES),
        float(last == _INFEASIBLE),
        log1p(len(message or "")),
    ]


def _kinds(actions: Sequence[str]) -> list[str]:
    """Return the names of the functions that the actions call, "" where one calls none."""
    return [match[1] if (match := _NAME.match(action)) else "" for action in actions]


def _longest_repeat(actions: Sequence[str]) -> int:
    """Count the consecutive repeats of the most repeated action."""
    best = run = 0
    for position, action in enumerate(actions):
        run = run + 1 if position and action == actions[position - 1] else 1
        best = max(best, run)
    return best


def ended_by_environment(trajectory: Trajectory) -> bool:
    """Return True if the run ended before its budget although the agent's last action ended
    nothing."""
    actions = [step.action.strip() for step in trajectory.steps if step.action]
    return (
        trajectory.truncated is False
        and bool(actions)
        and _kinds(actions[-1:])[0] not in (*_MESSAGES, _INFEASIBLE)
    )


class TelemetryModel(Record):
    """A standardised logistic regression as it is kept in a file.

    ``features`` are names of ``FEATURES``; ``means`` and ``scales`` standardise them, a number
    that a run does not tell counts as the mean. A run succeeds from a probability of ``threshold``
    on; it lies above 1 where no threshold reached ``target_precision`` on the training data.
    ``trained_on`` counts trajectories, ``training_keys`` are the hashes of their keys.
    """

    features: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    threshold: float = Field(ge=0)
    target_precision: float
    trained_on: int
    training_keys: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> TelemetryModel:
        sizes = {len(self.features), len(self.means), len(self.scales), len(self.weights)}
        unknown = set(self.features) - set(FEATURES)
        numbers = (*self.means, *self.scales, *self.weights, self.intercept, self.threshold)
        if len(sizes) > 1 or unknown or not all(map(isfinite, numbers)) or 0 in self.scales:
            raise ValueError("one mean, scale and weight, finite, for every known feature")
        return self

    def probability(self, values: Sequence[float]) -> float:
        """Compute P(success) from one number for every name of ``FEATURES``, in their order."""
        by_name = dict(zip(FEATURES, values, strict=True))
        logit = self.intercept
        for name, mean, scale, weight in zip(
            self.features, self.means, self.scales, self.weights, strict=True
        ):
            if isfinite(by_name[name]):
                logit += weight * (by_name[name] - mean) / scale
        return 1 / (1 + exp(-logit)) if logit > -700 else 0.0


def read_model(path: Path | None) -> TelemetryModel:
    """Read the model in a file. Raises UserError."""
    if path is None:
        raise UserError(
            "--judge telemetry needs --judge-option model=FILE: train one with  "
            "trajudge judges train --data KIND:PATH --save FILE"
        )
    try:
        return TelemetryModel.model_validate_json(read_utf8(path))
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}: name the file of --save of  trajudge judges train"
        ) from error
    except ValidationError as error:
        raise UserError(
            f"{path}: holds no telemetry model ({refused_value(error).why}): train it again with  "
            "trajudge judges train --save FILE"
        ) from error


def fit(
    rows: NDArray[np.float64],
    labels: NDArray[np.bool_],
    groups: NDArray[np.str_],
    rng: np.random.Generator,
    *,
    names: Sequence[str] = FEATURES,
    target_precision: float,
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
    evenly. These are the folds of scikit-learn's ``StratifiedGroupKFold``: groups in random order,
    the least balanced first, each go to the fold with which the shares of the labels spread
    least over the folds; of equal ones to the smallest."""
    _, kind = np.unique(labels, return_inverse=True)
    names, group = np.unique(groups, return_inverse=True)
    sizes = np.zeros((len(names), kind.max() + 1))
    np.add.at(sizes, (group, kind), 1)
    order = np.arange(len(names))
    np.random.RandomState(int(rng.integers(2**31))).shuffle(order)  # as scikit-learn draws
    order = order[np.argsort(-sizes[order].std(axis=1), kind="stable")]
    fold_of = np.empty(len(names), dtype=np.intp)
    filled, each = np.zeros((count, sizes.shape[1])), np.eye(count)[:, :, None]
    for name in order.tolist():
        shares = (filled + each * sizes[name]) / sizes.sum(axis=0)
        spread, held = shares.std(axis=1).mean(axis=1).tolist(), filled.sum(axis=1).tolist()
        best = 0
        for fold in range(1, count):
            is_equal = abs(spread[fold] - spread[best]) <= _EQUAL[0] + _EQUAL[1] * spread[best]
            if spread[fold] < spread[best] or (is_equal and held[fold] < held[best]):
                best = fold
        fold_of[name], filled[best] = best, filled[best] + sizes[name]
    folds = fold_of[group]
    return [(np.flatnonzero(folds != each), np.flatnonzero(folds == each)) for each in range(count)]


_EQUAL = 1e-8, 1e-5  # differences, absolute and relative, up to which two spreads are equal


def out_of_fold(
    rows: NDArray[np.float64],
    labels: NDArray[np.bool_],
    groups: NDArray[np.str_],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Predict P(success) of every row (n,) by a regression trained without its group.

    Five folds, fewer where fewer groups have a label of each kind, so that every training part has
    both.
    Raises ValueError if only one group has one of the kinds.
    """
    probabilities = np.zeros(len(labels))
    rarest = min(len(set(groups[labels == kind])) for kind in (True, False))
    for train, test in folds_of(labels, groups, rng, min(5, rarest)):
        probabilities[test] = predicted(rows[train], labels[train], rows[test])
    return probabilities


def predicted(
    train: NDArray[np.float64], labels: NDArray[np.bool_], rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Predict P(success) of ``rows`` (n, d) by a regression on ``train`` (m, d) and its ``labels``
    (m,); a number that a run does not tell counts as the mean."""
    means, scales, weights, intercept = _regression(train, labels)
    standardised = np.nan_to_num((rows - means) / scales, nan=0.0)
    return np.asarray(scipy.special.expit(standardised @ weights + intercept))


def _regression(
    rows: NDArray[np.float64], labels: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Fit a regression; return means, scales, weights (d,) and intercept."""
    known = np.isfinite(rows)
    count = np.maximum(1, known.sum(axis=0))
    means = np.where(known, rows, 0).sum(axis=0) / count
    centred = np.where(known, rows - means, 0)
    scales = np.sqrt((centred**2).sum(axis=0) / count)
    scales[scales == 0] = 1
    return means, scales, *logistic_regression(centred / scales, labels, penalty=1 / 0.3)


def logistic_regression(
    rows: Any, labels: NDArray[np.bool_], penalty: float = 1.0
) -> tuple[NDArray[np.float64], float]:
    """Return the weights (d,) and the intercept that minimise the summed log loss of ``labels``
    (n,) plus ``penalty`` / 2 times the squared weights; ``rows`` (n, d) may be sparse. It stops
    where the largest slope of the mean is 1e-4, as ``LogisticRegression(C=1 / penalty)`` of
    scikit-learn does, whose solver this is (L-BFGS-B of SciPy)."""
    n, d = rows.shape

    def loss_and_slopes(solution: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = solution[:d]
        odds = rows @ weights + solution[d]
        loss = np.sum(np.logaddexp(0, odds) - labels * odds) / n
        errors = (scipy.special.expit(odds) - labels) / n
        slopes = np.append(rows.T @ errors + penalty / n * weights, errors.sum())
        return float(loss + penalty / n * (weights @ weights) / 2), slopes

    precision = 64 * np.finfo(float).eps
    found = scipy.optimize.minimize(
        loss_and_slopes,
        np.zeros(d + 1),
        method="L-BFGS-B",
        jac=True,
        options={"maxiter": 2000, "maxls": 50, "gtol": 1e-4, "ftol": precision},
    )
    return found.x[:d], float(found.x[d])


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
