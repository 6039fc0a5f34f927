"""Rewards for what a request names: trajectories, or the ids of pushed ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trajudge.rewards.reward import Reward
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.server.given import GivenRewards
from trajudge.rewards.server.groups import RewardGroups
from trajudge.rewards.server.metrics import ServerMetrics
from trajudge.rewards.server.recorded import RecordedTrajectories
from trajudge.rewards.settings import RewardServerConfig
from trajudge.trajectories.model import Trajectory, TrajectoryKey


class TooBusy(Exception):
    """As many rewards are at work as the server takes; the client asks again."""


class RewardService:
    """The judge, what was pushed, and what was counted: what every protocol shares."""

    def __init__(self, config: RewardServerConfig, rewarder: Rewarder) -> None:
        self.config = config
        self.rewarder = rewarder
        self.recorded = RecordedTrajectories(config.folder)
        self.given = GivenRewards()
        self.groups = RewardGroups()
        self.metrics = ServerMetrics()
        self.at_work = 0

    async def rewards(
        self, wanted: Sequence[Trajectory | str], deadline: float | None = None
    ) -> list[Reward]:
        """Return the rewards of trajectories and ids, in order, each within ``deadline`` seconds
        and the server's own. Raises TooBusy at once if they are too many."""
        if self.at_work + len(wanted) > self.config.queue:
            raise TooBusy
        limits = [limit for limit in (deadline, self.config.reward.deadline) if limit is not None]
        known = [self._given(one) for one in wanted]
        rest = [one for one, reward in zip(wanted, known, strict=True) if reward is None]
        self.at_work += len(rest)
        try:
            asked = (self._reward(one, min(limits, default=None)) for one in rest)
            judged = iter(await asyncio.gather(*asked) if rest else ())
        finally:
            self.at_work -= len(rest)
        rewards = [next(judged) if reward is None else reward for reward in known]
        for reward in rewards:
            self.metrics.add(reward)
        return rewards

    async def push(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Keep a trajectory under an id; the hashes of images that are not here yet. Raises
        NoTrajectory, OSError."""
        missing = await self.recorded.push(name, record)
        self.given.forget(name)
        return missing

    def _given(self, wanted: Trajectory | str) -> Reward | None:
        if isinstance(wanted, Trajectory) or self.rewarder.watch.monitor.stopped:
            return None
        return self.given.get(wanted)

    async def _reward(self, wanted: Trajectory | str, limit: float | None) -> Reward:
        started = time.monotonic()
        if isinstance(wanted, Trajectory):
            return await self.rewarder.reward(wanted, deadline=limit)
        patience = self.config.patience if limit is None else min(limit, self.config.patience)
        found = await self.recorded.find(wanted, patience)
        waited = time.monotonic() - started
        if found is None:
            key = TrajectoryKey(benchmark="", agent="", task_id=wanted)
            never = f"no trajectory was pushed under this id within {waited:.1f} s"
            return self.rewarder.function.abstention(key, "late", never, waited)
        rest = None if limit is None else max(0.0, limit - waited)
        reward = await self.rewarder.reward(found, deadline=rest, name=wanted)
        reward = reward.model_copy(update={"seconds": reward.seconds + waited})
        if self.recorded.is_kept(wanted, found):  # not pushed again meanwhile, and whole
            self.given.add(wanted, reward)
        return reward
