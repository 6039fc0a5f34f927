"""Success rates of agents by expert, judge and rule (AgentRewardBench Table 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.scoring.groups import Group
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.protocol import success_rate
from trajudge.eval.scoring.records import Missing, SuccessRate
from trajudge.eval.stats.intervals.clustered_rates import rates_by_cluster


class RateCells(NamedTuple):
    """What a row is of: a judge's observations of success in a group."""

    judge: str
    group: Group
    seen: Observations


def success_rates(cells: Iterable[RateCells], missing: Missing) -> list[SuccessRate]:
    """The three rates of every cell; under the paper's protocol rounded to four digits, 0 of
    nothing, and a missing verdict is no success."""
    chosen = [*cells]
    seen = [c.seen.where(c.seen.answered) if missing == "exclude" else c.seen for c in chosen]
    # Expert and reward are the trajectory's, whoever judges it: judges are computed together.
    together: dict[bytes, list[int]] = defaultdict(list)
    for number, each in enumerate(seen):
        together[each.place.tobytes()].append(number)
    intervals: list[dict[str, tuple[float, float]]] = [{} for _ in chosen]
    for members in together.values():
        for number, found in zip(members, _intervals([seen[i] for i in members]), strict=True):
            intervals[number] = found
    return [
        _success_rate(cell, each, missing, found)
        for cell, each, found in zip(chosen, seen, intervals, strict=True)
    ]


def _intervals(judges: Sequence[Observations]) -> list[dict[str, tuple[float, float]]]:
    """Of every judge of the same trajectories, by the names of the rates; empty without any."""
    seen = judges[0]
    if not len(seen):
        return [{} for _ in judges]
    columns = [seen.truth, *(judge.verdict == 1 for judge in judges)]
    expert, *accepted = _limits(seen, np.column_stack(columns))
    rewarded = seen.where(~np.isnan(seen.reward))
    rule = _limits(rewarded, rewarded.reward)[0] if len(rewarded) else None
    return [
        {
            name: limits
            for name, limits in (("expert", expert), ("judge_rate", mine), ("rule_based", rule))
            if limits is not None
        }
        for mine in accepted
    ]


def _success_rate(
    cell: RateCells,
    seen: Observations,
    missing: Missing,
    intervals: dict[str, tuple[float, float]],
) -> SuccessRate:
    rewarded = seen.where(~np.isnan(seen.reward))
    values = {"expert": seen.truth, "judge_rate": seen.verdict == 1, "rule_based": rewarded.reward}
    rates: dict[str, Any] = {name: _mean(array, missing) for name, array in values.items()}
    place = {"judge": cell.judge, **cell.group._asdict()}
    more = {"n": len(seen), "rewarded": len(rewarded), "intervals": intervals}
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
