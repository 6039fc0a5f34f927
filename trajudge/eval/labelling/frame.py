"""The frame of a queue: every trajectory that might have been drawn, what judges said of it, and
how likely each is a success by that.

It is written with the queue (``frame.jsonl``), so that estimates need the labels alone. It holds
verdicts: no page that is blind reads it.

Before there are labels the share of votes predicts success. Afterwards a ridge-penalised logistic
regression on verdicts, scores, rule and benchmark is fitted to labels; those that it predicts are
never among those that it was fitted to (``cross_fitted``), so that an estimate corrected by its
residuals stays unbiased however wrong the model is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from trajudge.annotations.model import Labels
from trajudge.eval.labelling.designs import KnownVerdicts
from trajudge.eval.scoring.observations import one_per_trajectory
from trajudge.eval.sources import Source
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import Bools, Floats, Ints
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import UnsafeFile, read_regular, write_bytes

FILE = "frame.jsonl"
RULE = "rule-based"
LEAST_LABELS = 20
"""Labels from which a model of them is better than the share of votes."""

_FORMAT = "trajudge-label-frame"
_MAX_BYTES = 2**30
FOLDS = 5
PENALTY = 2.0
_STEPS = 25


@dataclass(frozen=True, eq=False)
class Frame:
    """N trajectories with the verdicts (N, J) and scores (N, J) of ``judges`` and the ``rule``
    (N,): 1, 0 or nan. ``chances`` (N,) are the inclusion probabilities, nan before the draw."""

    keys: Sequence[TrajectoryKey]
    judges: Sequence[str]
    verdicts: Floats
    scores: Floats
    rule: Floats
    chances: Floats

    @cached_property
    def evaluators(self) -> list[str]:
        """Name the judges and, where there are official rewards that are not one's verdicts, the
        rule."""
        beside = RULE not in self.judges and (~np.isnan(self.rule)).any()
        return [*self.judges, *([RULE] if beside else [])]

    @cached_property
    def votes(self) -> Floats:
        """Stack the verdicts of all evaluators (N, V)."""
        with_rule = len(self.evaluators) > len(self.judges)
        return np.hstack([self.verdicts, *([self.rule[:, None]] if with_rule else [])])

    @property
    def columns(self) -> Floats:
        """Make the columns (N, F) of a regression."""
        benchmarks = np.unique([key.benchmark for key in self.keys], return_inverse=True)[1]
        return features(self.votes, self.scores, benchmarks.ravel())

    def probability(self, labels: Labels) -> Floats:
        """Predict success (N,): by the labels of the frame, where there are enough of both kinds,
        else by the share of votes."""
        learned = self.learned_probability(labels)
        return vote_share(self.votes) if learned is None else learned

    def learned_probability(self, labels: Labels) -> Floats | None:
        """Predict success (N,) by a regression on the labels of the frame; None where there are
        too few of both kinds."""
        known = [(i, labels[key].success) for i, key in enumerate(self.keys) if key in labels]
        decided = [(place, success) for place, success in known if success is not None]
        successes = sum(success for _, success in decided)
        if len(decided) < LEAST_LABELS or not 0 < successes < len(decided):
            return None
        places = np.array([place for place, _ in decided])
        truth = np.array([success for _, success in decided])
        columns = self.columns
        return predict(columns, fit_logistic(columns[places], truth, np.ones(len(truth))))

    def evidence(self, probability: Floats) -> KnownVerdicts:
        """Bring together what designs need."""
        votes = self.votes
        return KnownVerdicts(
            probability=probability,
            votes=votes,
            accepted=np.nan_to_num(votes) > 0.5,
            rule=self.rule,
            strata=np.unique(self.strata(), return_inverse=True)[1].ravel().astype(np.int64),
        )

    def strata(self) -> list[str]:
        """Name each trajectory's stratum: benchmark, agent, and what most votes say."""
        share = vote_share(self.votes)
        return [
            f"{key.benchmark} / {key.agent} / {'yes' if vote >= 0.5 else 'no'}"
            for key, vote in zip(self.keys, share.tolist(), strict=True)
        ]


def read_frame(source: Source, kept: Collection[TrajectoryKey] | None = None) -> Frame:
    """Gather the trajectories that were judged (of ``kept``, where it is given), in the order of
    their keys. Of several samples of a judge the strict majority counts and the mean of the scores,
    as in its scores. Raises UserError where there is none."""
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in source.judgments:
        if kept is None or judgment.key in kept:
            by_judge.setdefault(judgment.judge, []).append(judgment)
    if not by_judge and kept is not None:
        raise UserError("--filter keeps no trajectory of these runs")
    if not by_judge:
        raise UserError("no trajectory was judged in these runs: there is nothing to draw from")
    judged = {judgment.key for judgments in by_judge.values() for judgment in judgments}
    keys = sorted(judged, key=lambda key: key.order)
    rows = {key: row for row, key in enumerate(keys)}
    table = np.full((len(keys), len(by_judge), 2), np.nan)
    for column, judgments in enumerate(by_judge.values()):
        for one in one_per_trajectory(judgments):
            if one.status is Status.OK:
                table[rows[one.key], column] = one.success, one.score  # None is nan
    rewards = [source.rewards.get(key) for key in keys]
    rule = np.array([np.nan if reward is None else float(reward > 0.5) for reward in rewards])
    nothing = np.full(len(keys), np.nan)
    return Frame(keys, list(by_judge), table[..., 0], table[..., 1], rule, nothing)


def write_frame(folder: Path, frame: Frame) -> None:
    """Write ``frame.jsonl``: a header, then a line for each trajectory. Raises OSError."""
    lines = [orjson.dumps({"format": _FORMAT, "version": 1, "judges": list(frame.judges)})]
    for row, key in enumerate(frame.keys):
        fields = {
            "key": key.model_dump(mode="json"),
            "verdicts": _optional(frame.verdicts[row]),
            "scores": _optional(frame.scores[row]),
            "rule": _optional(frame.rule[row : row + 1])[0],
            "inclusion_probability": float(frame.chances[row]),
        }
        lines.append(orjson.dumps(fields))
    write_bytes(folder / FILE, b"\n".join(lines) + b"\n")


def open_frame(folder: Path) -> Frame:
    """Read the frame of a queue. Raises UserError for one that is missing or cannot be read."""
    path = folder / FILE
    try:
        header, *lines = map(orjson.loads, read_regular(path, _MAX_BYTES).splitlines())
        judges = header["judges"]
        shape = (len(lines), len(judges))
        return Frame(
            [TrajectoryKey.model_validate(line["key"]) for line in lines],
            judges,
            _numbers(line["verdicts"] for line in lines).reshape(shape),
            _numbers(line["scores"] for line in lines).reshape(shape),
            _numbers([line["rule"]] for line in lines).ravel(),
            _numbers([line["inclusion_probability"]] for line in lines).ravel(),
        )
    except (OSError, UnsafeFile, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: cannot be read as the frame of a queue ({error}): build the queue again"
        ) from error


def places(frame: Frame, keys: Iterable[TrajectoryKey]) -> Ints:
    """Find the places of trajectories in the frame."""
    place: Mapping[TrajectoryKey, int] = {key: row for row, key in enumerate(frame.keys)}
    return np.array([place[key] for key in keys], dtype=np.int64)


def _optional(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _numbers(rows: Iterable[Sequence[float | None]]) -> Floats:
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=float)


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
