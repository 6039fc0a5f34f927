"""Asks a reward server as verl and as OpenRLHF do, in a process of their own.

``python -m tests.rewards.trainer_clients SITE_PACKAGES URL COUNT`` prints what they made of the
rewards, as JSON: verl's reward manager, ours as its configuration loads it, and an agent loop of
its own worker (spec G2); OpenRLHF's own client, and an agent of its multi-turn executor (spec G3, a
sample).
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

sys.path.append(sys.argv[1])

import numpy as np
import torch
from omegaconf import OmegaConf
from openrlhf.utils.agent import SingleTurnAgentExecutor
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopWorker
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.utils.import_utils import load_extern_object

from tests.rewards.cases import block_of, trajectory
from trajudge.rewards import trainers
from trajudge.rewards.client import URL
from trajudge.rewards.trainers import verl_score

GROUP = 8


class VerlWords:
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
    return manager(config, VerlWords(), score)


async def verl_rewards(url: str, count: int) -> list[dict[str, Any]]:
    """What the manager made of the rewards of ``r0``, ``r1``, ..., with their advantages."""
    made = reward_manager(url, 60)
    asked = (made.run_single(one(i, f"group {i // GROUP}")) for i in range(count))
    return with_advantages(list(await asyncio.gather(*asked)))


def with_advantages(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What verl makes of scores in groups of eight."""
    rewards = torch.tensor([[row["reward_score"]] for row in told])
    groups = np.array([number // GROUP for number in range(len(told))])
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


async def rollout(loop: Any, sampling_params: dict[str, Any], row: dict[str, Any]) -> Any:
    """What the guide leaves to its reader: the policy's tokens, and the run of the row's number."""
    tokens = {"prompt_ids": [1, 2], "response_ids": [1, 3], "response_mask": [1, 1], "num_turns": 2}
    return {**tokens, "metrics": AgentLoopMetrics()}, trajectory(row["extra_info"]["number"])


# verl imports the agent loop by its name in this module.
exec(compile(block_of("trainers.md", "AgentLoopBase"), "trainers.md", "exec"), globals())


async def verl_agent_rewards(count: int) -> list[dict[str, Any]]:
    """What verl's worker made of the agent loops of ``count`` rows, with their advantages. Its
    reward workers are none: who asked them would fail."""
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
    rollout = OmegaConf.create(
        {
            **sampling,
            **{"n": GROUP, "val_kwargs": {"n": 1, **sampling}, "calculate_log_probs": False},
            **{"prompt_length": 4, "response_length": 4, "agent": {"default_agent_loop": "shop"}},
        }
    )
    worker = AgentLoopWorker.__new__(AgentLoopWorker)
    words = Tokenizer(WordLevel({"<pad>": 0, "a": 1, "b": 2, "c": 3}, "a"))
    vars(worker).update(
        config=OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}}),
        rollout_config=rollout,
        tokenizer=PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>"),
        **dict.fromkeys(("llm_client", "processor", "hf_model_type", "dataset_cls")),
        tools=[],
        mm_processor_kwargs={},
        reward_loop_worker_handles=[None],
        distillation_enabled=False,
    )
    rows = {
        "raw_prompt": [[{"role": "user", "content": "buy"}]] * count,
        "extra_info": [{"number": number, "split": "train"} for number in range(count)],
        "uid": [f"prompt {number // GROUP}" for number in range(count)],
    }
    columns = {name: np.empty(count, dtype=object) for name in rows}
    for name, values in rows.items():
        columns[name][:] = values
    batch = DataProto.from_dict(tensors={"row": torch.arange(count)}, non_tensors=columns)
    made = await worker.generate_sequences(batch)
    scores = made.batch["rm_scores"].sum(dim=-1).tolist()
    names = made.meta_info["reward_extra_keys"]
    return with_advantages(
        [
            {
                "reward_score": score,
                "reward_extra_info": {
                    name: float(made.non_tensor_batch[name][row]) for name in names
                },
            }
            for row, score in enumerate(scores)
        ]
    )


class Words:
    """The few things that the client asks of a tokenizer."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"input_ids": [SimpleNamespace(tolist=lambda: [1, 2])]}

    def decode(self, tokens: list[int], **_: Any) -> str:
        return " ".join(map(str, tokens))


class OneAnswer:
    """A generation engine with one reply."""

    async def generate(self, *_: Any, **__: Any) -> Any:
        reply = SimpleNamespace(token_ids=[3], text="3", finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[reply])


async def openrlhf_answers(url: str, count: int) -> list[dict[str, Any]]:
    """What the client made of the rewards of ``r0``, ``r1``, ..."""
    executor = SingleTurnAgentExecutor(url)
    settings = SimpleNamespace(max_tokens=4, logprobs=None)
    asked = (
        executor.execute("p", f"r{i}", settings, 64, Words(), OneAnswer()) for i in range(count)
    )
    answers = await asyncio.gather(*asked)
    return [{name: one[name] for name in ("reward", "scores", "extra_logs")} for one in answers]


class Turns(OneAnswer):
    """An engine that acts once and then stops; ``endless`` never does."""

    def __init__(self, *, endless: bool) -> None:
        self.words = itertools.repeat("click") if endless else iter(["click", "stop"])

    async def generate(self, *given: Any, **more: Any) -> Any:
        answered = await super().generate(*given, **more)
        answered.outputs[0].text = next(self.words)
        return answered


async def openrlhf_turns(count: int) -> list[dict[str, Any]]:
    """What the executor of the guide made of the episodes 0, 1, ..., and of one that never ends."""
    names: dict[str, Any] = {}
    exec(compile(block_of("trainers.md", "AgentExecutor"), "trainers.md", "exec"), names)
    asked = (
        names["AgentExecutor"]().execute(
            f"Do task {number}",
            f"t{number}",
            SimpleNamespace(max_tokens=4, logprobs=None),
            16,
            Words(),
            Turns(endless=number == count),
        )
        for number in range(count + 1)
    )
    answers = await asyncio.gather(*asked)
    shown = ("reward", "scores", "extra_logs", "action_ranges")
    return [{name: one[name] for name in shown} for one in answers]


async def main(url: str, count: int) -> None:
    os.environ[URL] = url
    found = {
        "verl": await verl_rewards(url, count),
        "validation": await verl_validation(url),
        "verl_agents": await verl_agent_rewards(count),
        "openrlhf": await openrlhf_answers(f"{url}/get_reward", count),
        "openrlhf_turns": await openrlhf_turns(count),
    }
    sys.stdout.write(json.dumps(found) + "\n")


loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(main(sys.argv[2], int(sys.argv[3])))
