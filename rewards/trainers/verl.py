"""verl: the function of ``reward.custom_reward_function``.

    reward.custom_reward_function.path=.../trajudge/rewards/trainers/verl.py
    reward.custom_reward_function.name=compute_score

verl has no way to leave a sample out: NaN makes its whole group NaN. So an abstention is the base
rate that the calibration was measured at (``on_abstain="neutral"``), marked as abstained, or an
exception (``"raise"``). Every sample has the same keys, which verl's collating needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from trajudge.rewards.abstaining import Abstained, neutral_values
from trajudge.rewards.trainers.asking import RewardUnavailable, ask_reward


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    url: str | None = None,
    column: str = "trajectory_id",
    on_abstain: Literal["neutral", "raise"] = "neutral",
    deadline: float = 170.0,
    **_: Any,
) -> dict[str, float]:
    """Return score, accuracy (1: accepted) and what says how far they count, of the trajectory that
    was pushed under ``extra_info[column]``.

    Raises Abstained under ``"raise"``, or where there is no base rate; RewardUnavailable without a
    server.
    """
    name = (extra_info or {}).get(column)
    if name is None:
        raise RewardUnavailable(f"a row of {data_source} has no extra_info[{column!r}]")
    reward, neutral = await ask_reward(str(name), url=url, deadline=deadline)
    if reward.value is None and on_abstain == "raise":
        raise Abstained(f"{name}: {reward.abstained} ({reward.detail})")
    (score,) = neutral_values([reward], base_rate=neutral)
    return {
        "score": score,
        "acc": float(reward.verdict is True),
        "abstained": float(reward.value is None),
        "probability": -1.0 if reward.probability is None else reward.probability,
        "cost": reward.cost or 0.0,
    }
