"""What the labels of a queue say: every evaluator's precision over the frame, and hidden checks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.transfer import queue_annotations
from trajudge.annotations.model import primary_labels
from trajudge.eval.labelling.building import ExpectedWidth
from trajudge.eval.labelling.estimates import PrecisionEstimates, estimate_precision
from trajudge.eval.labelling.frame import open_frame, places
from trajudge.eval.labelling.prediction import DrawnLabels, cross_fitted, vote_share
from trajudge.util.errors import UserError
from trajudge.util.tables import Table


class QueueEstimates(NamedTuple):
    """The precision of each of ``evaluators`` from ``labelled`` of ``drawn`` items of a frame of
    ``size`` trajectories. Where some are missing the others stand for them."""

    evaluators: list[str]
    estimates: PrecisionEstimates
    labelled: int
    drawn: int
    size: int


def queue_estimates(store: LabelStore) -> QueueEstimates:
    """Estimate from the labels of a queue, adjudicated ones first. Raises UserError without any."""
    frame = open_frame(store.folder)
    labels = primary_labels(queue_annotations(store))
    drawn = [stored.item for stored in store.items() if stored.item.gold is None]
    decided = [
        (item, label.success)
        for item in drawn
        if (label := labels.get(item.key)) is not None and label.success is not None
    ]
    if len(decided) < 2:
        raise UserError(f"{store.folder}: has {len(decided)} decided labels; estimates need two")
    at = places(frame, [item.key for item, _ in decided])
    chances = frame.chances[at] * (len(decided) / len(drawn))
    truth = np.array([success for _, success in decided])
    decided_labels = DrawnLabels(at, truth, chances)
    share = vote_share(frame.votes)
    rng = np.random.default_rng([store.settings.seed, 3])
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


def expected_table(expected: list[ExpectedWidth], budget: int) -> Table:
    """Lay out the widths that a design is expected to give."""
    rows = tuple(
        (
            each.evaluator,
            f"{each.accepted:,}",
            *(_width(width) for width in (each.width, each.random)),
        )
        for each in expected
    )
    title = f"expected width of the 95 % interval of precision, {budget:,} labels"
    return Table(title, ("evaluator", "accepts", "this queue", "random"), rows, 1)


def _width(width: float) -> str:
    """Show a width; an interval is never wider than the whole scale."""
    return "" if np.isnan(width) else f"{min(width, 1.0):.3f}"
