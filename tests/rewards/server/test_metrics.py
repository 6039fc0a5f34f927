"""What an operator sees of rewards: costs are those of calls, not of answers from the cache."""

from __future__ import annotations

from typing import Any

import pytest

from trajudge.judges.model import Status
from trajudge.rewards.reward import Reward, why_abstained
from trajudge.rewards.service import ServerMetrics
from trajudge.trajectories.model import TrajectoryKey

KEY = TrajectoryKey(benchmark="shop", agent="a", task_id="t")


def reward(value: float | None = 1.0, **fields: Any) -> Reward:
    return Reward(key=KEY, value=value, judge="j", version="v", **fields)


def test_what_was_cached_or_is_not_done_costs_nothing() -> None:
    metrics = ServerMetrics()
    metrics.add(reward(status=Status.OK, cost=0.25))
    metrics.add(reward(status=Status.OK, cost=None))
    metrics.add(reward(status=Status.OK, cost=0.5, cached=True))
    metrics.add(reward(None, abstained="late"))
    text = metrics.text({})
    assert "trajudge_cost_dollars_total 0.250000" in text
    assert "trajudge_rewards_of_unknown_cost_total 1\n" in text


@pytest.mark.parametrize(("detail", "why"), [("", "refused"), ("no answer", "no answer")])
def test_an_abstention_is_told_with_its_detail_or_its_status(detail: str, why: str) -> None:
    one = reward(None, abstained="failed", status=Status.REFUSED, detail=detail)
    assert why_abstained(one) == f"{KEY}: failed ({why})"
