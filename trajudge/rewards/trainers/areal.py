"""AReaL: a reward function for its process pool.

AReaL pickles the function into other processes and takes a call that lasts 15 seconds for a
failure worth 0. Give ``AsyncRewardWrapper(reward_fn, timeout_seconds=...)`` more than ``DEADLINE``,
so that the judge's own deadline comes first.
"""

from __future__ import annotations

import asyncio
from typing import Any

from trajudge.rewards.abstaining import neutral_values
from trajudge.rewards.trainers.asking import ask_reward

DEADLINE = 170.0  # seconds


def reward_fn(
    prompt: str,
    completions: str,
    prompt_ids: list[int],
    completion_ids: list[int],
    *,
    trajectory_id: str,
    **_: Any,
) -> float:
    """Return the reward of the trajectory that the row's column ``trajectory_id`` names; an
    abstention is the base rate of the calibration.

    Raises Abstained where there is none, RewardUnavailable without a server.
    """
    asked = asyncio.run(ask_reward(trajectory_id, deadline=DEADLINE))
    (value,) = neutral_values([asked.reward], base_rate=asked.neutral_value)
    return value
