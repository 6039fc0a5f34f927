"""Two GRPO steps of the real TRL on a two-layer random model, rewards from a judge at a server.

Part of ``trl_programs``, which the tests start so that they need no torch: ``main`` prints, as
JSON, what the trainer made of the judge's reward alone, and combined with a second function.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from tests.rewards.cases import trajectory
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.trainers import combine, stop_on_drift, trajudge_reward

WORDS = ["[PAD]", "[EOS]", "[UNK]", *(f"w{i}" for i in range(61))]
GROUP = 8


class Recorded(GRPOTrainer):  # type: ignore[misc]
    """Keeps the rewards and the advantages that TRL made of them."""

    kept: list[dict[str, Any]]

    def _calculate_rewards(self, *given: Any) -> Any:
        rewards = super()._calculate_rewards(*given)
        self.kept = [*getattr(self, "kept", []), {"rewards": rewards[:, 0].tolist()}]
        return rewards

    def _generate_and_score_completions(self, *given: Any) -> Any:
        scored = super()._generate_and_score_completions(*given)
        self.kept[-1]["advantages"] = scored["advantages"].tolist()
        return scored


def tokenizer_of(words: list[str]) -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate(words)}
    made = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", eos_token="[EOS]", unk_token="[UNK]"
    )


def model_of(words: int, **more: int) -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=words, **size, **heads, **more))


def rewarder_at(url: str, folder: Path, **more: Any) -> Rewarder:
    calls = CallConfig(base_url=f"{url}/v1", cache=str(folder / "replies.sqlite"), **more)
    judge = JudgeConfig(judge="simplified", model="mock", representation="axtree")
    return Rewarder(RewardConfig(judge=judge, calls=calls))


def half(completions: list[str], **_: Any) -> list[float]:
    """A second reward function that always has a value."""
    return [0.5] * len(completions)


def settings_of(folder: Path, **more: Any) -> GRPOConfig:
    """Settings of two steps on this machine, one group of completions a step."""
    given = {
        "output_dir": str(folder / "out"),
        "per_device_train_batch_size": GROUP,
        "num_generations": GROUP,
        "max_completion_length": 8,
        "max_steps": 2,
        "logging_steps": 1,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
    }
    return GRPOConfig(**(given | more))


def trained(function: Any, folder: Path, *callbacks: Any, **settings: Any) -> dict[str, Any]:
    """Train two steps with one group each, or as the settings say."""
    trainer = Recorded(
        model=model_of(len(WORDS)),
        args=settings_of(folder, **settings),
        train_dataset=Dataset.from_list([{"prompt": f"w{i} w1", "task": i} for i in range(4)]),
        reward_funcs=[function],
        processing_class=tokenizer_of(WORDS),
        callbacks=list(callbacks),
    )
    trainer.train()
    logged = sorted({name for line in trainer.state.log_history for name in line})
    return {"groups": trainer.kept, "logged": logged, "steps": trainer.state.global_step}


def stopped(url: str, folder: Path) -> int:
    """Train with rewards that the watch stopped; the steps that were made."""
    rewarder = rewarder_at(url, folder)
    for _ in range(50):
        rewarder.watch.monitor.failure_test.add(1.0)
    judged = trajudge_reward(rewarder, lambda row: trajectory(row["task"], row["completion"]))
    made = trained(judged, folder, stop_on_drift(rewarder))
    return int(made["steps"])


def main(url: str, folder: Path) -> None:
    found: dict[str, Any] = {"stopped": stopped(url, folder)}
    for name in ("alone", "combined"):
        place = folder / name
        place.mkdir()
        judged = trajudge_reward(
            rewarder_at(url, place), lambda row: trajectory(row["task"], row["completion"])
        )
        found[name] = trained(judged if name == "alone" else combine(judged, half), place)
    sys.stdout.write(json.dumps(found) + "\n")
