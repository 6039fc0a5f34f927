"""SkyRL: the last step of a text environment, with the judge's reward.

SkyRL takes a number from every step and has no mask that an environment could set: an abstention is
the base rate of the calibration, and ``metadata`` says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from trajudge.rewards.abstaining import neutral_values
from trajudge.rewards.trainers.asking import ask_reward


def judged_step(
    trajectory_id: str, observations: Sequence[dict[str, str]] = (), *, deadline: float = 170.0
) -> dict[str, Any]:
    """Return what ``BaseTextEnv.step`` returns at the end of an episode whose trajectory was
    pushed.

    Raises Abstained where there is no base rate, RewardUnavailable without a server.
    """
    asked = asyncio.run(ask_reward(trajectory_id, deadline=deadline))
    reward = asked.reward
    (value,) = neutral_values([reward], base_rate=asked.neutral_value)
    probability = -1.0 if reward.probability is None else reward.probability
    return {
        "observations": list(observations),
        "reward": value,
        "done": True,
        "metadata": {"abstained": reward.abstained, "probability": probability},
        "postprocessed_action": None,
    }
