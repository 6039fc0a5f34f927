"""``trajudge label estimate``: each judge's precision from the labels of a queue, and agreement.

The estimates are of the trajectories that the queue was drawn from (its frame), not of other tasks.
``corrected`` is prediction-powered: the mean prediction over what a judge accepts, corrected by the
residuals of the labelled part, each weighted by one over its inclusion probability. ``labels_only``
is the weighted mean of the labels. Variances are those of a sample of fixed size with unequal
probabilities (Deville 1999); Student's degrees of freedom are those of the effective number of
labels, since a queue by disagreement gives few of them much weight.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from trajudge.annotations import open_annotations
from trajudge.annotations.model import primary_labels
from trajudge.annotations.queue import LabelQueue
from trajudge.annotations.queue_files import queue_annotations
from trajudge.eval.labelling.agreement import (
    LabelAgreement,
    agreement_tables,
    annotation_goals,
    measure_agreement,
)
from trajudge.eval.labelling.frame import (
    DrawnLabels,
    cross_fitted,
    open_frame,
    places,
    vote_share,
)
from trajudge.eval.labelling.settings import EstimateConfig
from trajudge.eval.store.task_goals import TaskGoals, read_goals
from trajudge.stats.intervals import Bools, Floats, Interval, Ints, defined, t_quantile
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.tables import Table, render
from trajudge.util.terminal import one_line

UNSEEN_LABELS = 2.0
"""The least variance is that of as many labels that are wrong: nearly the upper limit of the errors
that the exact interval allows where none was seen. By half a label 88 % of the intervals of
precisions near 1 cover."""
TOO_FEW = "fewer than two labels among what it accepts"


@dataclass(frozen=True, eq=False)
class PrecisionEstimates:
    """Intervals (J,) of every judge's precision: with the predictions' help, and by labels alone;
    ``labels`` (J,) is how many lie among what it accepts."""

    corrected: Interval
    labels_only: Interval
    labels: Ints


@dataclass(frozen=True, eq=False)
class QueueEstimates:
    """The precision of each of ``evaluators`` from ``labelled`` of ``drawn`` items of a frame of
    ``size`` trajectories. Where some are missing the others stand for them."""

    evaluators: list[str]
    estimates: PrecisionEstimates
    labelled: int
    drawn: int
    size: int


def print_estimates(config: EstimateConfig) -> int:
    """Print the judges' precision (of a queue) and the annotators' agreement; the exit code. Raises
    UserError where the labels are too few for either."""
    estimates = None
    if config.queue is not None:
        queue = LabelQueue(config.queue)
        annotations = queue_annotations(queue, config.stage)
        goals: TaskGoals = read_goals(config.queue)
        if sum(label.success is not None for label in primary_labels(annotations).values()) > 1:
            estimates = queue_estimates(queue)
        queue.close()
    else:
        annotations = open_annotations(str(config.annotations))
        goals = annotation_goals(str(config.annotations))
        if config.split != "all":
            annotations = [each for each in annotations if each.split == config.split]
    agreements, note = measure_agreement(annotations, goals, config.task_id)
    if estimates is None and not agreements:
        if config.queue is None:
            raise UserError(
                f"--annotations {config.annotations}: no trajectory has labels of two annotators, "
                "so that there is no agreement to measure: add a second annotator's labels"
            )
        raise UserError(
            f"{config.queue}: has fewer than two decided labels, and no trajectory with two: an "
            "estimate needs two labels, agreement a second opinion (trajudge label build --double)"
        )
    if note:
        sys.stderr.write(one_line(note) + "\n")
    if config.json_output:
        sys.stdout.write(_json(estimates, agreements))
        return OK
    shown = [*([estimates_table(estimates)] if estimates else []), *agreement_tables(agreements)]
    sys.stdout.write(render(shown, config.format))
    return OK


def _json(queue: QueueEstimates | None, agreements: list[LabelAgreement]) -> str:
    rows: list[dict[str, Any]] = []
    if queue is not None:
        counts, both = queue.estimates.labels.tolist(), queue.estimates
        for place, name in enumerate(queue.evaluators):
            corrected, labels_only = (
                [defined(end[place]) for end in ends]
                for ends in (
                    (i.estimate, i.low, i.high) for i in (both.corrected, both.labels_only)
                )
            )
            row: dict[str, Any] = {"evaluator": name, "labels": counts[place]}
            rows.append({**row, "corrected": corrected, "labels_only": labels_only})
    whole = {"precision": rows, "agreement": [each.model_dump(mode="json") for each in agreements]}
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(whole, option=option).decode()


def queue_estimates(queue: LabelQueue) -> QueueEstimates:
    """Estimate from the labels of a queue, adjudicated ones first. Raises UserError without any."""
    frame = open_frame(queue.folder)
    labels = primary_labels(queue_annotations(queue))
    drawn = [item for _, item in queue.items() if item.gold is None]
    decided = [
        (item, label.success)
        for item in drawn
        if (label := labels.get(item.key)) is not None and label.success is not None
    ]
    if len(decided) < 2:
        raise UserError(f"{queue.folder}: has {len(decided)} decided labels; estimates need two")
    at = places(frame, [item.key for item, _ in decided])
    chances = frame.chances[at] * (len(decided) / len(drawn))
    truth = np.array([success for _, success in decided])
    decided_labels = DrawnLabels(at, truth, chances)
    share = vote_share(frame.votes)
    rng = np.random.default_rng([queue.settings.seed, 3])
    predicted = cross_fitted(frame.columns, share, decided_labels, rng)
    accepted = frame.evidence(share).accepted
    estimated = estimate_precision(decided_labels, predicted, accepted)
    return QueueEstimates(frame.evaluators, estimated, len(decided), len(drawn), len(frame.keys))


def estimates_table(queue: QueueEstimates) -> Table:
    """Lay the estimates out as a table."""
    rows = []
    for place, name in enumerate(queue.evaluators):
        cells = [name, f"{int(queue.estimates.labels[place]):,}"]
        for interval in (queue.estimates.corrected, queue.estimates.labels_only):
            ends = (interval.estimate[place], interval.low[place], interval.high[place])
            value, low, high = (f"{end:z.3f}" for end in ends)
            cells.append("" if np.isnan(ends).any() else f"{value} [{low}, {high}]")
        rows.append(tuple(cells))
    title = (
        f"precision over {queue.size:,} trajectories, "
        f"from {queue.labelled:,} of {queue.drawn:,} labels"
    )
    return Table(title, ("evaluator", "labels", "corrected", "labels alone"), tuple(rows), 1)


def estimate_precision(
    drawn: DrawnLabels, predicted: Floats, accepted: Bools
) -> PrecisionEstimates:
    """Estimate with 95 % limits from the labels that were drawn; ``predicted`` (N,) and
    ``accepted`` (N, J) are of the whole frame."""
    labelled, labels, chances = drawn
    inside = accepted[labelled].astype(float)
    sizes = accepted.sum(axis=0).astype(float)
    counts = accepted[labelled].sum(axis=0)
    y = labels.astype(float)
    weights = 1 / chances
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = (y - predicted[labelled])[:, None] * inside
        base = predicted @ accepted / sizes
        corrected = base + weights @ residuals / sizes
        variance = _variance(residuals, chances) / sizes**2
        own = weights @ inside
        mean = (weights * y) @ inside / own
        deviations = (y[:, None] - mean) * inside
        own_variance = _variance(deviations, chances) / own**2
    df = np.maximum(_effective(inside / chances[:, None]) - 1, 1.0)
    return PrecisionEstimates(
        _interval(corrected, _guarded(variance, counts, sizes), counts, df),
        _interval(mean, _guarded(own_variance, counts, sizes), counts, df),
        counts,
    )


def _effective(weights: Floats) -> Floats:
    """Effective number (J,) of the labels that a variance rests on, (Σ w²)² / Σ w⁴ of their
    ``weights`` (n, J): where few of them weigh much, those few show it."""
    squares = weights**2
    return np.asarray(squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), 1e-300))


def _variance(values: Floats, chances: Floats) -> Floats:
    """Estimate the variance (J,) of the weighted totals of ``values`` (n, J)."""
    rest = 1 - chances
    if len(chances) < 2 or not rest.sum() > 0:
        return np.zeros(values.shape[1])
    share = rest / rest.sum()
    expanded = values / chances[:, None]
    centred = np.nan_to_num(expanded - share @ expanded)
    return np.asarray(rest @ centred**2 / (1 - share @ share))


def _guarded(variance: Floats, counts: Ints, sizes: Floats) -> Floats:
    """Add the variance of half a label that is wrong beyond those that were seen, and bound it by
    that of ``UNSEEN_LABELS``: labels that show no error do not prove that there is none. Neither
    applies where everything is labelled."""
    with np.errstate(divide="ignore", invalid="ignore"):
        open_part = np.clip(1 - counts / sizes, 0, 1)
        one = open_part / np.maximum(counts, 1) ** 2
        return np.asarray(np.maximum(variance + 0.5 * one, UNSEEN_LABELS * one))


def _interval(estimate: Floats, variance: Floats, counts: Ints, df: Floats) -> Interval:
    confidence = 0.95
    half = t_quantile(confidence, df) * np.sqrt(variance)
    usable = counts >= 2
    low, high = (
        np.where(usable, np.clip(end, 0, 1), np.nan) for end in (estimate - half, estimate + half)
    )
    notes = () if usable.all() else (TOO_FEW,)
    return Interval(np.clip(estimate, 0, 1), low, high, confidence, notes)
