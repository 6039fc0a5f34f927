"""verifiers and prime-rl: the reward of a task's trace.

    class Task(vf.Task):
        @vf.reward
        async def judged(self, trace) -> float:
            return await judged_reward(trace)

An exception leaves the trace out of the training, which is what an abstention means.
"""

from __future__ import annotations

from typing import Any

from trajudge.rewards.abstaining import Abstained
from trajudge.rewards.trainers.asking import ask_reward, pushed_name


async def judged_reward(trace: Any, *, deadline: float = 170.0) -> float:
    """Return the reward of the trajectory that was pushed under ``trace.info["trajectory_id"]``.

    Raises Abstained where the judge has no value, RewardUnavailable without a server or an id.
    """
    name = pushed_name("a trace's info", trace.info)
    reward = (await ask_reward(name, deadline=deadline)).reward
    if reward.value is None:
        raise Abstained(f"{name}: {reward.abstained} ({reward.detail})")
    return reward.value
