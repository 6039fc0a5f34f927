"""What a trainer gets for a group some of whose members have no value.

Trainers that normalise within a group differ in what they can take: a missing value, a neutral
one, or an exception. Every rule here is chosen by name, and none makes a failure a low value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trajudge.rewards.reward import Reward

OnAbstain = Literal["none", "neutral", "raise"]
"""``none``: None, for trainers that leave it out. ``neutral``: the mean of the members that have a
value, which leaves a group's advantages of 0 for it. ``raise``: the trainer drops the group."""


class Abstained(Exception):
    """The judge gave no value, and the trainer asked for an exception."""


def values_of(
    rewards: Sequence[Reward], on_abstain: OnAbstain, *, base_rate: float | None = None
) -> list[float | None]:
    """Return the values of one group, (N,), in its order.

    ``base_rate`` is the neutral value of a group in which nobody has one. Raises Abstained under
    ``raise``, and under ``neutral`` where there is no base rate either.
    """
    values = [reward.value for reward in rewards]
    known = [value for value in values if value is not None]
    if len(known) == len(values) or on_abstain == "none":
        return values
    first = next(reward for reward in rewards if reward.value is None)
    why = f"{first.key}: {first.abstained} ({first.detail or first.status})"
    if on_abstain == "raise":
        raise Abstained(why)
    if not known and base_rate is None:
        raise Abstained(f"{why}; no member of its group has a value, and there is no base rate")
    neutral = sum(known) / len(known) if known else base_rate
    return [neutral if value is None else value for value in values]
