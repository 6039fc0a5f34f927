"""Rewards that were given: what is asked for again by its id is answered at once.

Equal trajectories and equal versions have equal rewards; a server has one version. Asking again
(a retry, another epoch) is no new evidence for the watch.
"""

from __future__ import annotations

from collections import OrderedDict

from trajudge.rewards.reward import Reward

_MOST = 20_000


class GivenRewards:
    """The last rewards by the ids of their trajectories."""

    def __init__(self) -> None:
        self._given: OrderedDict[str, Reward] = OrderedDict()

    def get(self, name: str) -> Reward | None:
        """Return the reward of an id, as one from the cache."""
        reward = self._given.get(name)
        if reward is not None:
            self._given.move_to_end(name)
        return reward

    def add(self, name: str, reward: Reward) -> None:
        """Keep a reward that would be the same again: one with a value, or a cached failure."""
        if reward.value is None and not (reward.cached and reward.abstained == "failed"):
            return
        self._given[name] = reward.model_copy(update={"cached": True, "seconds": 0.0})
        if len(self._given) > _MOST:
            self._given.popitem(last=False)

    def forget(self, name: str) -> None:
        """Forget an id, under which another trajectory is pushed."""
        self._given.pop(name, None)
