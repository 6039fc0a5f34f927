"""verl's reward manager, ours as its configuration loads it, asks the server for rewards (spec G2),
and verl makes advantages of them."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import numpy as np
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.utils.import_utils import load_extern_object

from trajudge.rewards import trainers
from trajudge.rewards.trainers import verl_score

GROUP = 8


class Words:
    """The one thing that the manager asks of a tokenizer."""

    def decode(self, tokens: Any, **_: Any) -> str:
        return " ".join(map(str, tokens.tolist()))


def one(number: int, group: str, split: str = "train") -> DataProto:
    rows = {name: torch.ones(1, 4, dtype=torch.long) for name in ("prompts", "responses")}
    rows["attention_mask"] = torch.ones(1, 8, dtype=torch.long)
    told: dict[str, Any] = {
        "data_source": "shop",
        "reward_model": {"ground_truth": ""},
        "extra_info": {"split": split},
        "uid": group,
    }
    # The data set's row names the run, or the agent loop in its ``extra_fields``.
    place = "tool_extra_fields" if number % 2 else "extra_info"
    told.setdefault(place, {})["trajectory_id"] = f"r{number}"
    return DataProto.from_dict(
        tensors=rows,
        non_tensors={name: np.array([value], dtype=object) for name, value in told.items()},
    )


def reward_manager(url: str, deadline: float) -> Any:
    score = functools.partial(verl_score, url=url, deadline=deadline)
    manager: Any = load_extern_object(str(trainers.__file__), "TrajudgeRewardManager")
    rollout = {"n": GROUP, "val_kwargs": {"n": 1}}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})
    return manager(config, Words(), score)


async def verl_rewards(url: str, count: int) -> list[dict[str, Any]]:
    """What the manager made of the rewards of ``r0``, ``r1``, ..., with their advantages."""
    made = reward_manager(url, 60)
    asked = (made.run_single(one(i, f"group {i // GROUP}")) for i in range(count))
    told = list(await asyncio.gather(*asked))
    rewards = torch.tensor([[row["reward_score"]] for row in told])
    groups = np.array([number // GROUP for number in range(count)])
    advantages, _ = compute_grpo_outcome_advantage(rewards, torch.ones_like(rewards), groups)
    return [
        {**row, "advantage": float(advantage)}
        for row, advantage in zip(told, advantages[:, 0], strict=True)
    ]


async def verl_validation(url: str) -> dict[str, Any]:
    """What the manager made of ``r0`` in validation, where it is alone in its group."""
    alone = reward_manager(url, 600).run_single(one(0, "validated", "test"))
    made: dict[str, Any] = await asyncio.wait_for(alone, 120)
    return made
