"""Success rates of agents by expert, judge and rule (AgentRewardBench Table 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from eval.observations import Observations
from eval.protocol import success_rate
from eval.scores import Missing, SuccessRate
from eval.stats.binomial import wilson
from eval.stats.cluster_bootstrap import sum_clusters
from eval.stats.influence import delta_interval
from eval.stats.interval import Floats


def success_rate_of(
    judge: str, benchmark: str, agent: str, seen: Observations, missing: Missing
) -> SuccessRate:
    """The three rates on the observed trajectories; under the paper's protocol rounded to four
    digits, 0 of nothing, and a missing verdict is no success."""
    if missing == "exclude":
        seen = seen.where(seen.answered)
    n, rewarded = len(seen), seen.where(~np.isnan(seen.reward))
    accepted = seen.verdict == 1
    values = {"expert": seen.truth, "judge_rate": accepted, "rule_based": rewarded.reward}
    rates: dict[str, Any] = {name: _mean(array, missing) for name, array in values.items()}
    intervals: dict[str, tuple[float, float]] = {}
    if n:
        limits = wilson([seen.truth.sum(), accepted.sum()], [n, n])
        for i, name in enumerate(("expert", "judge_rate")):
            intervals[name] = float(limits.low[i]), float(limits.high[i])
    if len(rewarded) and (found := _reward_limits(rewarded)):
        intervals["rule_based"] = found
    place = {"judge": judge, "benchmark": benchmark, "agent": agent}
    more = {"n": n, "rewarded": len(rewarded), "intervals": intervals}
    return SuccessRate.model_validate({**place, **more, **rates})


def _mean(values: np.ndarray[Any, Any], missing: Missing) -> float | None:
    if missing == "agentrewardbench":
        return success_rate(values.tolist())
    return float(values.mean()) if len(values) else None


def _reward_limits(seen: Observations) -> tuple[float, float] | None:
    """Inside [0, 1]; None where there are not two tasks."""
    columns = np.column_stack([seen.reward, np.ones(len(seen))])
    interval = delta_interval(sum_clusters(columns, seen.task, seen.benchmark), _ratio)
    if np.isnan(interval.low[0]):
        return None
    return max(0.0, float(interval.low[0])), min(1.0, float(interval.high[0]))


def _ratio(totals: Floats) -> Floats:
    return totals[..., :1] / totals[..., 1:]
