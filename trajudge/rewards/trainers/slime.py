"""slime: the functions of ``--custom-rm-path``.

    --custom-rm-path trajudge.rewards.trainers.slime.group_reward --group-rm
    --custom-rm-path trajudge.rewards.trainers.slime.reward

A sample whose ``remove_sample`` is set has no part in the loss, but its reward stays in the mean
and the spread of its group. An abstention therefore sets it, and gets the mean of the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from trajudge.rewards.abstaining import neutral_values
from trajudge.rewards.trainers.asking import ask_reward, pushed_name


async def group_reward(args: Any, samples: Sequence[Any], **_: Any) -> list[float]:
    """Return the rewards of a group whose ``metadata`` name pushed trajectories, in its order.

    Raises Abstained where nobody has a value and there is no base rate, RewardUnavailable without
    a server or an id.
    """
    names = [pushed_name("a sample's metadata", one.metadata) for one in samples]
    asked = await asyncio.gather(*map(ask_reward, names))
    for sample, one in zip(samples, asked, strict=True):
        if one.reward.value is None:
            sample.remove_sample = True
    neutral = next((one.neutral_value for one in asked if one.neutral_value is not None), None)
    return neutral_values([one.reward for one in asked], base_rate=neutral)


async def reward(args: Any, sample: Any, **_: Any) -> float:
    """Return one sample's reward: an abstention is the base rate of the calibration."""
    (value,) = await group_reward(args, [sample])
    return value
