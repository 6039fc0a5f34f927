"""The names of the layouts and their units, without what ``--help`` need not load."""

from __future__ import annotations

from typing import Literal

FormatName = Literal[
    "trl-messages",
    "trl-prompt-completion",
    "trl-preference",
    "trl-kto",
    "llamafactory",
    "axolotl",
    "verl",
    "openai-sft",
    "hf",
]
Per = Literal["trajectory", "step"]
