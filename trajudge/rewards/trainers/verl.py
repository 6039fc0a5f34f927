"""verl: the function of ``reward.custom_reward_function``.

    reward.custom_reward_function.path=.../trajudge/rewards/trainers/verl.py
    reward.custom_reward_function.name=compute_score

verl has no way to leave a sample out: NaN makes its whole group NaN. So an abstention is a neutral
value (``on_abstain="neutral"``), marked as abstained, or an exception (``"raise"``). Neutral is the
mean of its group, whose advantage is 0, where the row says its group; else the base rate that the
calibration was measured at. Groups are said by our reward manager, which passes on what verl knows:

    reward.reward_manager.source=importlib
    reward.reward_manager.name=TrajudgeRewardManager
    reward.reward_manager.module.path=.../trajudge/rewards/trainers/verl.py

Every sample has the same keys, which verl's collating needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from trajudge.rewards.abstaining import Abstained, neutral_values
from trajudge.rewards.trainers.asking import RewardGroup, RewardUnavailable, ask_reward

GROUP, GROUP_SIZE = "group", "group_size"
# What ``extra_info["split"]`` says of validation data: verl's preprocessing writes the first.
VALIDATION = frozenset({"test", "val", "validation", "dev"})


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
    was pushed under ``extra_info[column]``; its ``group`` and ``group_size`` may stand beside.

    verl's validation reports the mean accuracy, where an abstention counts as its score does.

    Raises Abstained under ``"raise"``, or where there is no base rate; RewardUnavailable without a
    server.
    """
    row = extra_info or {}
    name, in_group, size = (row.get(key) for key in (column, GROUP, GROUP_SIZE))
    if name is None:
        raise RewardUnavailable(
            f"a row of {data_source} has no extra_info[{column!r}]: let the agent loop return it "
            "in its extra_fields"
        )
    group = RewardGroup(str(in_group), int(size)) if in_group is not None and size else None
    reward, neutral = await ask_reward(str(name), url=url, deadline=deadline, group=group)
    if reward.value is None and on_abstain == "raise":
        raise Abstained(f"{name}: {reward.abstained} ({reward.detail})")
    (score,) = neutral_values([reward], base_rate=neutral)
    return {
        "score": score,
        "acc": score if reward.value is None else float(reward.verdict is True),
        "abstained": float(reward.value is None),
        "probability": -1.0 if reward.probability is None else reward.probability,
        "cost": reward.cost or 0.0,
    }


def __getattr__(name: str) -> Any:
    if name == "TrajudgeRewardManager":
        return _reward_manager()
    raise AttributeError(name)


@cache
def _reward_manager() -> type:
    """Make the manager that tells a row's group: rows of one prompt have one ``uid``.

    verl does not tell a manager whether it validates, where a prompt has ``val_kwargs.n`` rollouts
    and not ``rollout.n``: the row's split does.
    """
    from verl.experimental.reward_loop.reward_manager.naive import (  # noqa: PLC0415 - the trainer
        NaiveRewardManager,
    )

    class TrajudgeRewardManager(NaiveRewardManager):  # type: ignore[misc]
        async def run_single(self, data: Any) -> dict[str, Any]:
            row = data[-1:][0].non_tensor_batch
            told = row.get("extra_info")
            if told is not None and row.get("uid") is not None:
                rollout = self.config.actor_rollout_ref.rollout
                validates = told.get("split") in VALIDATION
                told.setdefault(GROUP, str(row["uid"]))
                told.setdefault(GROUP_SIZE, int((rollout.val_kwargs if validates else rollout).n))
            found: dict[str, Any] = await super().run_single(data)
            return found

    return TrajudgeRewardManager
