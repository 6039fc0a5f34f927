"""Runs the guide's lines of GRPO as they are, on a random model of two layers.

Part of ``trl_programs``: ``main`` prints, as JSON, what TRL logged of each. The name of the policy
leads to the random model, the settings are those of a short training, and the address of the reward
server is that of a test; the judge's server is named by the environment.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])

from tests.rewards.trl_environment import settings, tokenizer
from tests.rewards.trl_steps import model_of

GUIDE = Path(__file__).parents[2] / "docs/trl.md"
ADDRESS = "http://127.0.0.1:8377"


def blocks() -> list[str]:
    """The blocks of the guide that train: by a server, and in one process."""
    found: list[str] = re.findall(
        r"^```python\n(.*?)^```$", GUIDE.read_text("utf-8"), flags=re.M | re.S
    )
    return [block for block in found if "GRPOTrainer(" in block]


def trained(code: str, folder: Path, server_url: str) -> dict[str, Any]:
    """Train as a block says."""
    words = tokenizer()
    words.save_pretrained(folder / "policy")
    model_of(len(words), max_position_embeddings=4096).save_pretrained(folder / "policy")
    short = code.replace("Qwen/Qwen3-0.6B", str(folder / "policy")).replace(ADDRESS, server_url)
    short = short.replace("GRPOTrainer(", "trainer = GRPOTrainer(").replace(").train()", ")")
    assert "args=GRPOConfig()" in short
    names: dict[str, Any] = {"settings": settings(words, folder)}
    exec(compile(short.replace("args=GRPOConfig()", "args=settings"), "trl.md", "exec"), names)
    names["trainer"].train()
    logged = [one for one in names["trainer"].state.log_history if "reward" in one]
    return {"lines": len([n for n in code.splitlines() if n]), "logged": logged}


def main(folder: Path, server_url: str) -> None:
    told = []
    for number, code in enumerate(blocks()):
        place = folder / str(number)
        place.mkdir()
        told.append(trained(code, place, server_url))
    sys.stdout.write(json.dumps(told) + "\n")
