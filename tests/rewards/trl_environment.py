"""Two GRPO steps of the real TRL whose rollouts are episodes of an environment, by a random policy
that calls its tools.

Part of ``trl_programs``: ``main`` prints, as JSON, what the trainer made of the judge's rewards and
where it logged them. What the policy says is drawn at random from a few texts, calls included: each
is a token of its own, and generation may not choose the others.
"""

from __future__ import annotations

import json
import struct
import sys
from itertools import count
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])

import pandas
import trl
from datasets import Dataset
from tensorboardX.proto.event_pb2 import Event
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from tests.rewards.trl_steps import Recorded, model_of, rewarder_at, settings_of
from trajudge.rewards.trainers import JudgedEnvironment, trajudge_reward
from trajudge.trajectories.model import Observation, TrajectoryKey

MUGS = count()


class Shop(JudgedEnvironment):
    def reset(self, goal: str, **_: Any) -> str:
        self._begin(goal, key=TrajectoryKey(benchmark="shop", agent="policy", task_id="1"))
        self._mug = next(MUGS)
        return self._see(Observation(axtree=f"[1] button 'Buy mug {self._mug}'"))

    def click(self, element: str) -> str:
        """Click an element of the page.

        Args:
            element: its number
        """
        self._act(f"click({element!r})")
        return self._see(Observation(axtree=f"[2] heading 'Bought mug {self._mug}'"))

    def answer(self, text: str) -> str:
        """Answer the user and end the task.

        Args:
            text: the answer
        """
        self._answer(text)
        return "The task is over."


def call(name: str, **arguments: str) -> str:
    """A tool call as Qwen3's template writes it."""
    told = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{told}\n</tool_call>"


END = "<|im_end|>"
TEXTS = [call("click", element="1"), call("answer", text="I bought the mug."), "It is done.", END]


def tokenizer() -> PreTrainedTokenizerFast:
    made = Tokenizer(BPE({byte: n for n, byte in enumerate(sorted(ByteLevel.alphabet()))}, []))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), ByteDecoder()
    words = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token="<|pad|>")
    texts = ["<|im_start|>", *TEXTS]
    words.add_tokens(
        [AddedToken(text, special=text.startswith("<|"), normalized=False) for text in texts]
    )
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    words.chat_template = template.read_text(encoding="utf-8")
    return words


def settings(words: PreTrainedTokenizerFast, folder: Path) -> trl.GRPOConfig:
    said = set(words.convert_tokens_to_ids(TEXTS))
    return settings_of(
        folder,
        max_steps=2,
        max_completion_length=300,
        max_tool_calling_iterations=2,
        generation_kwargs={
            "suppress_tokens": [n for n in range(len(words)) if n not in said],
            "max_new_tokens": 3,
        },
        report_to=["tensorboard"],
        log_completions=True,
    )


def events(folder: Path) -> dict[str, list[float]]:
    """Read TensorBoard's files: records with their length and its checksum before, their own
    after."""
    values: dict[str, list[float]] = {}
    for file in sorted(folder.rglob("events.out.tfevents.*")):
        content = file.read_bytes()
        while content:
            (size,) = struct.unpack("<Q", content[:8])
            for value in Event.FromString(content[12 : 12 + size]).summary.value:
                values.setdefault(value.tag, []).append(value.simple_value)
            content = content[16 + size :]
    return values


def main(url: str, folder: Path) -> None:
    words = tokenizer()
    prices = folder / "prices.toml"
    prices.write_text("[models.mock]\ninput = 1.0\noutput = 1.0\n", encoding="utf-8")
    source = rewarder_at(url, folder, prices=str(prices))
    trainer = Recorded(
        model=model_of(len(words), max_position_embeddings=4096),
        args=settings(words, folder),
        processing_class=words,
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": "Buy it. "}], "goal": "Buy a mug"}] * 2
        ),
        reward_funcs=trajudge_reward(source),
        environment_factory=lambda: Shop(source),
    )
    trainer.train()
    tables = sorted((folder / "out").rglob("completions_*.parquet"))
    columns = [pandas.read_parquet(table).filter(regex="^trajudge|^step$") for table in tables]
    told = {
        "groups": trainer.kept,
        "history": [line for line in trainer.state.log_history if "reward" in line],
        "events": events(folder),
        "tables": [json.loads(one.to_json(orient="columns")) for one in columns],
        "answers": [environment._started().answer for environment in trainer.environments],
    }
    sys.stdout.write(json.dumps(told) + "\n")
