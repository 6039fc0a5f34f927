"""Success rates of agents by expert, judge and rule (AgentRewardBench Table 6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eval.groups import Group
from eval.observations import Observations
from eval.protocol import success_rate
from eval.scores import Missing, SuccessRate
from eval.stats.clustered_rates import rates_by_cluster


class RateCells(NamedTuple):
    """What a row is of: a judge's observations of success in a group."""

    judge: str
    group: Group
    seen: Observations


def success_rates(cells: Iterable[RateCells], missing: Missing) -> list[SuccessRate]:
    """The three rates of every cell; under the paper's protocol rounded to four digits, 0 of
    nothing, and a missing verdict is no success."""
    # The reward is the trajectory's, whoever judges it: its limits are computed once.
    known: dict[bytes, tuple[float, float] | None] = {}
    return [_success_rate(cell, missing, known) for cell in cells]


def _success_rate(
    cell: RateCells, missing: Missing, known: dict[bytes, tuple[float, float] | None]
) -> SuccessRate:
    seen = cell.seen.where(cell.seen.answered) if missing == "exclude" else cell.seen
    n, rewarded = len(seen), seen.where(~np.isnan(seen.reward))
    accepted = seen.verdict == 1
    values = {"expert": seen.truth, "judge_rate": accepted, "rule_based": rewarded.reward}
    rates: dict[str, Any] = {name: _mean(array, missing) for name, array in values.items()}
    intervals: dict[str, tuple[float, float]] = {}
    if n:
        both = _limits(seen, np.column_stack([seen.truth, accepted]))
        intervals = {
            name: limits
            for name, limits in zip(("expert", "judge_rate"), both, strict=True)
            if limits is not None
        }
    same = rewarded.place.tobytes()
    if same not in known:
        known[same] = _limits(rewarded, rewarded.reward)[0] if len(rewarded) else None
    if found := known[same]:
        intervals["rule_based"] = found
    place = {"judge": cell.judge, **cell.group._asdict()}
    more = {"n": n, "rewarded": len(rewarded), "intervals": intervals}
    return SuccessRate.model_validate({**place, **more, **rates})


def _mean(values: np.ndarray[Any, Any], missing: Missing) -> float | None:
    if missing == "agentrewardbench":
        return success_rate(values.tolist())
    return float(values.mean()) if len(values) else None


def _limits(seen: Observations, values: ArrayLike) -> list[tuple[float, float] | None]:
    """Of the mean of each column of ``values`` (N, L); None where there are not two tasks."""
    found = rates_by_cluster(values, np.ones(()), seen.task, seen.benchmark).interval
    return [
        None if np.isnan(low) else (low, high)
        for low, high in zip(found.low.tolist(), found.high.tolist(), strict=True)
    ]
