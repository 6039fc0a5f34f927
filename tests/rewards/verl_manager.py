"""verl's reward manager asks the server for rewards (spec G2, a sample)."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import numpy as np
import torch
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

from trajudge.rewards.trainers.verl import compute_score


class Words:
    """The one thing that the manager asks of a tokenizer."""

    def decode(self, tokens: Any, **_: Any) -> str:
        return " ".join(map(str, tokens.tolist()))


def one(number: int) -> DataProto:
    rows = {name: torch.ones(1, 4, dtype=torch.long) for name in ("prompts", "responses")}
    rows["attention_mask"] = torch.ones(1, 8, dtype=torch.long)
    told = {
        "data_source": "shop",
        "reward_model": {"ground_truth": ""},
        "extra_info": {"trajectory_id": f"r{number}"},
    }
    return DataProto.from_dict(
        tensors=rows,
        non_tensors={name: np.array([value], dtype=object) for name, value in told.items()},
    )


async def verl_rewards(url: str, count: int) -> list[dict[str, Any]]:
    """What the manager made of the rewards of ``r0``, ``r1``, ..."""
    score = functools.partial(compute_score, url=url, deadline=60)
    manager = NaiveRewardManager(None, Words(), score)
    return list(await asyncio.gather(*(manager.run_single(one(i)) for i in range(count))))
