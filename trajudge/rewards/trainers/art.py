"""ART: rewards for the trajectories of a group; those without a value leave it."""

from __future__ import annotations

import asyncio
from typing import Any

from trajudge.rewards.trainers.asking import ask_reward, pushed_name


async def judged_group(group: Any, *, deadline: float = 170.0) -> Any | None:
    """Set the rewards of an ``art.TrajectoryGroup`` whose trajectories' ``metadata`` name pushed
    ones, and keep those with a value.

    None where fewer than two are left: nothing could be compared. Raises RewardUnavailable without
    a server or an id.
    """
    names = [pushed_name("a trajectory's metadata", one.metadata) for one in group.trajectories]
    asked = await asyncio.gather(*(ask_reward(name, deadline=deadline) for name in names))
    kept = []
    for trajectory, one in zip(group.trajectories, asked, strict=True):
        if one.reward.value is not None:
            trajectory.reward = one.reward.value
            kept.append(trajectory)
    group.trajectories = kept
    return group if len(kept) > 1 else None
