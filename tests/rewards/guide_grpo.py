"""Runs the guide's lines of GRPO as they are, on a random model of two layers.

Part of ``trl_programs``: ``main`` prints, as JSON, what TRL logged. The name of the policy leads to
the random model, and the settings are those of a short training; the judge's server is named by the
environment.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from tests.rewards.trl_steps import model_of, settings_of

GUIDE = Path(__file__).parents[2] / "docs/rewards.md"


def lines() -> str:
    """The block of the guide that trains."""
    blocks: list[str] = re.findall(
        r"^```python\n(.*?)^```$", GUIDE.read_text("utf-8"), flags=re.M | re.S
    )
    (code,) = [block for block in blocks if "GRPOTrainer" in block]
    return str(code)


def save_policy(folder: Path) -> None:
    """Write a random model that is loaded by its folder, with a token for each byte."""
    special = ["<|endoftext|>", "<|pad|>"]
    tokens = [*special, *sorted(ByteLevel.alphabet())]
    made = Tokenizer(BPE({token: number for number, token in enumerate(tokens)}, []))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), ByteDecoder()
    end, pad = special
    saved = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=end, pad_token=pad)
    saved.save_pretrained(folder)
    model_of(len(tokens)).save_pretrained(folder)


def main(folder: Path) -> None:
    save_policy(folder / "policy")
    settings = settings_of(folder, per_device_train_batch_size=4, num_generations=4)
    code = lines()
    short = code.replace("Qwen/Qwen3-0.6B", str(folder / "policy"))
    short = short.replace("GRPOTrainer(", "trainer = GRPOTrainer(").replace(").train()", ")")
    assert "args=GRPOConfig()" in short
    names: dict[str, Any] = {"settings": settings}
    exec(compile(short.replace("args=GRPOConfig()", "args=settings"), "rewards.md", "exec"), names)
    names["trainer"].train()
    logged = [one for one in names["trainer"].state.log_history if "reward" in one]
    told = {"lines": len([n for n in code.splitlines() if n]), "logged": logged}
    sys.stdout.write(json.dumps(told) + "\n")
