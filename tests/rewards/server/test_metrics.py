"""What an operator sees of rewards: costs are those of calls, not of answers from the cache; and
what a server keeps in memory."""

from __future__ import annotations

from typing import Any

import pytest

from tests.judges.engine.parts import now, run
from trajudge.judges.model import Status
from trajudge.rewards.reward import Reward, why_abstained
from trajudge.rewards.service import Histogram, RewardCache, RewardGroups, ServerMetrics
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


def test_a_value_counts_up_to_its_bound_and_in_the_sum() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (1.0, 1.5, 2.0, 2.5):
        histogram.add(value)
    assert [*histogram.lines("x")] == [
        *("# TYPE x histogram", 'x_bucket{le="1"} 1', 'x_bucket{le="2"} 3'),
        *('x_bucket{le="+Inf"} 4', "x_sum 7.000000", "x_count 4"),
    ]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (reward(seconds=2.0), True),
        (reward(None, abstained="failed", cached=True), True),
        (reward(None, abstained="failed"), False),
        (reward(None, abstained="late", cached=True), False),
    ],
)
def test_a_reward_is_kept_if_it_would_come_again(given: Reward, kept: bool) -> None:
    cache = RewardCache()
    cache.add("a", given)
    expected = given.model_copy(update={"cached": True, "seconds": 0.0})
    assert cache.get("a") == (expected if kept else None)


def test_the_rewards_and_groups_that_were_not_used_for_longest_are_dropped() -> None:
    cache, groups, given = RewardCache(), RewardGroups(), reward()
    for number in range(20_000):
        cache.add(str(number), given)
    for number in range(10_000):
        groups.add(str(number), 1, "a", 0.5)
    assert cache.get("0") is not None
    cache.add("one more", given)
    assert [cache.get(name) is None for name in ("0", "1", "2")] == [False, True, False]
    assert run(groups.mean("0", 0.0)) == 0.5
    groups.add("one more", 1, "a", 0.5)
    assert [run(groups.mean(name, 0.0)) for name in ("0", "1")] == [None, 0.5]


def test_a_group_is_waited_for_until_it_is_complete() -> None:
    async def waited(members: int) -> tuple[float | None, float]:
        groups, began = RewardGroups(), now()
        for number in range(members):
            groups.add("g", 2, str(number), float(number))
            groups.add("g", 2, "0", 0.0)
        return await groups.mean("g", 60.0), now() - began

    assert run(waited(1)) == (0.0, 60.0)
    assert run(waited(2)) == (0.5, 0.0)
    assert run(waited(0)) == (None, 0.0)


@pytest.mark.parametrize(("detail", "why"), [("", "refused"), ("no answer", "no answer")])
def test_an_abstention_is_told_with_its_detail_or_its_status(detail: str, why: str) -> None:
    one = reward(None, abstained="failed", status=Status.REFUSED, detail=detail)
    assert why_abstained(one) == f"{KEY}: failed ({why})"
