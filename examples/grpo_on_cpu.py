"""Two GRPO steps of TRL with rewards from a judge, on a CPU and without a network.

    pip install trajudge trl torch
    python examples/grpo_on_cpu.py                     # the heuristic judge, no key
    python examples/grpo_on_cpu.py --model gpt-4o      # a model judges

The policy is a random model of two layers that writes words without sense, so nothing is learned;
what counts is how trajectories, rewards and abstentions go from a judge to the trainer. An
environment of yours would record a trajectory per completion; here each completion becomes the last
message of a run of the bundled sample.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

import trajudge as tj
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.trainers import stop_on_drift, trajudge_reward

SPECIAL = ["<pad>", "<end>", "<unknown>"]
WORDS = "I could not do it , the order is placed : done 1 2 3"
GROUP = 4


def policy() -> tuple[Qwen2ForCausalLM, PreTrainedTokenizerFast]:
    """Make a random model and its words."""
    torch.manual_seed(0)
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS.split()])}
    words = Tokenizer(WordLevel(vocabulary, unk_token="<unknown>"))
    words.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<end>", unk_token="<unknown>"
    )
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=len(vocabulary), **size, **heads)), tokenizer


def main() -> None:
    """Train two steps and print what the judge gave."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model that judges (default: the heuristic judge)")
    model = parser.parse_args().model
    judge = JudgeConfig(judge="simplified" if model else "heuristic", model=model)

    runs = list(tj.load("sample"))[:4]
    tasks = Dataset.from_list([{"prompt": run.goal, "run": n} for n, run in enumerate(runs)])

    def recorded(row: Mapping[str, Any]) -> tj.Trajectory:
        return runs[row["run"]].model_copy(update={"answer": row["completion"]})

    rewarder = Rewarder(RewardConfig(judge=judge))
    agent, tokenizer = policy()
    with TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=agent,
            processing_class=tokenizer,
            reward_funcs=[trajudge_reward(rewarder, recorded)],
            callbacks=[stop_on_drift(rewarder)],
            train_dataset=tasks,
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=GROUP,
                num_generations=GROUP,
                max_completion_length=12,
                max_steps=2,
                logging_steps=1,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
            ),
        )
        trainer.train()
    for step in trainer.state.log_history:
        if "reward" in step:
            print(f"mean reward {step['reward']}, abstained {step['trajudge/abstained']}")


if __name__ == "__main__":
    main()
