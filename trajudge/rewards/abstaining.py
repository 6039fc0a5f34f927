"""What a trainer gets for a group some of whose members have no value.

A trainer that leaves None out needs nothing of this. For one that takes numbers alone, a member
without a value gets a neutral one: the mean of the others, whose advantage is 0 and which moves no
mean. None makes a failure a low value.
"""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.rewards.reward import Reward


class Abstained(Exception):
    """The judge gave no value, and there is no neutral one."""


def neutral_values(rewards: Sequence[Reward], *, base_rate: float | None = None) -> list[float]:
    """Return the values of one group, (N,), in its order, neutral ones for members without.

    ``base_rate`` is the neutral value of a group in which nobody has one. Raises Abstained where it
    is needed and None.
    """
    known = [reward.value for reward in rewards if reward.value is not None]
    neutral = sum(known) / len(known) if known else base_rate
    values = [neutral if reward.value is None else reward.value for reward in rewards]
    first = next((one for one in rewards if one.value is None), None)
    if first is not None and neutral is None:
        raise Abstained(
            f"{why_abstained(first)}; no member of its group has a value, and there is no base rate"
        )
    return [value for value in values if value is not None]


def why_abstained(reward: Reward) -> str:
    """Name the trajectory of a reward without a value, and why it has none."""
    name = reward.key if reward.key.benchmark else reward.key.task_id
    return f"{name}: {reward.abstained} ({reward.detail or reward.status})"
