"""Measure a filter's yield: true positives per rollout and per dollar, and ties in it.

True positives per dollar = q P / (c_rollout + c_judge + q c_training), with q the share that
is accepted and P its precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trajudge.eval.select.measures.selection_data import SelectionData
from trajudge.eval.select.plan import Prices
from trajudge.stats.comparison import holm
from trajudge.stats.intervals import Bools, Floats, clustered_differences, sum_clusters


def dollars(prices: Prices, judging: float | None, share: float) -> float | None:
    """Compute what a rollout costs with its judgment and, if accepted, its training; None where a
    price is not known or everything is free."""
    if prices.rollout is None or judging is None:
        return None
    return prices.rollout + judging + share * prices.training or None


def spending(evidence: SelectionData, prices: Prices | None) -> Floats:
    """Compute the dollars of every trajectory under every candidate, (N, L); without prices 1
    each."""
    if prices is None or prices.rollout is None:
        return np.ones(evidence.judged.shape)
    each = np.array([prices.rollout + (judging or 0.0) for judging in evidence.prices])
    return np.asarray(each + prices.training * evidence.accepted)


@dataclass(frozen=True, eq=False)
class Ratio:
    """What candidates are compared by: the sum of ``above`` over the sum of ``below``, (N, L)."""

    above: Floats | Bools
    below: Floats | Bools


def indistinguishable(
    evidence: SelectionData, ratio: Ratio, reference: int, others: Sequence[int], *, alpha: float
) -> list[int]:
    """List the ``others`` that cannot be told from ``reference``: paired over the trajectories that
    both judged, tasks as clusters, Holm-corrected at ``alpha``. Where nothing can be compared,
    nothing is told apart."""
    p = [_p_value(evidence, ratio, [reference, other]) for other in others]
    return [o for o, value in zip(others, holm(p), strict=True) if not value <= alpha]


def _p_value(evidence: SelectionData, ratio: Ratio, pair: list[int]) -> float:
    """Compute that, two-sided, of "both ratios are the same" (``clustered_differences``); ``nan``
    where they cannot be compared."""
    both = evidence.judged[:, pair].all(axis=1)
    if not both.any():
        return np.nan
    above, below = (np.asarray(part[both][:, pair], float) for part in (ratio.above, ratio.below))
    # In the unit of the cheapest success a yield is a rate: at most 1 for each trajectory.
    below /= below[above > 0].min(initial=np.inf) if (above > 0).any() else 1.0
    columns = [above, below]
    if evidence.weight is not None:
        each = evidence.weight[both][:, None]
        columns = [above * each, below * each, below * each**2]
    table = np.concatenate(columns, axis=1)
    clusters = sum_clusters(table, evidence.task[both], evidence.benchmark[both])
    hits, trials, *squares = (clusters.sums.T[k : k + 2, None] for k in range(0, table.shape[1], 2))
    difference = clustered_differences(
        hits, trials, clusters.stratum_sizes, squares=next(iter(squares), None)
    )
    return float(difference.p_value[0])
