"""A judge against a baseline at the judge's own recall: whoever accepts as many of the successes
with fewer failures among them is the better filter."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import EqualRecall
from trajudge.eval.stats.interval import Bools, Floats
from trajudge.eval.stats.intervals.clustered_differences import clustered_differences
from trajudge.trajectories.model import TrajectoryKey


def at_equal_recall(
    judge: str, observed: Observations, baseline: str, scores: Mapping[TrajectoryKey, float]
) -> EqualRecall | None:
    """Compare on the trajectories that have a score of the baseline's; None where the judge
    accepts no success, for a recall of 0 is reached by accepting nothing."""
    keys = list(observed.reference.index)
    known = [keys[place] in scores for place in observed.index.tolist()]
    both = observed.where(np.array(known, dtype=bool))
    accepted = both.predictions == 1
    weights = np.ones(len(both)) if both.weights is None else both.weights
    successes = weights * both.labels
    hits = float(successes @ accepted)
    if not hits:
        return None
    ranked = np.array([scores[keys[place]] for place in both.index.tolist()])
    shares = accepted_shares(ranked, successes, hits)
    columns = np.column_stack([accepted & both.labels, accepted, shares * both.labels, shares])
    counts, squares, sizes = both.sum_by_task(columns, 2)
    interval = clustered_differences(
        counts[..., 0],
        counts[..., 1],
        sizes,
        squares=None if squares is None else squares[..., 1],
    ).interval
    low, high = float(interval.low), float(interval.high)
    return EqualRecall(
        judge=judge,
        baseline=baseline,
        n=len(both),
        recall=hits / float(successes.sum()),
        precision=hits / float(weights @ accepted),
        baseline_precision=float(successes @ shares / (weights @ shares)),
        difference=float(interval.estimate),
        low=None if np.isnan(low) else low,
        high=None if np.isnan(high) else high,
    )


def accepted_shares(scores: Floats, labels: Floats | Bools, hits: float) -> Floats:
    """Accept from the highest of ``scores`` (n,) down until ``hits`` successes (``labels`` (n,), or
    their weights) are accepted: 1, 0, or, of the equal scores at the threshold, the share that is
    needed, (n,)."""
    values, place = np.unique(-scores, return_inverse=True)
    successes = np.cumsum(np.bincount(place, weights=labels, minlength=len(values)))
    last = int(np.searchsorted(successes, hits - 1e-9))
    before = successes[last - 1] if last else 0.0
    share = (hits - before) / (successes[last] - before)
    return np.where(place < last, 1.0, np.where(place == last, share, 0.0))
