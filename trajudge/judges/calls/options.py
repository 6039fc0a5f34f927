"""The options that say how a model is called, the same for every command that calls one.

Nothing slow is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajudge.util.commands import amount, count, positive, whole

# How a model is called; a default of CallConfig's is not repeated here.
CALL_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "adapter": {
        "metavar": "NAME",
        "help": "openai, anthropic, azure, bedrock, vertex, gemini, litellm, scripted, http "
        "(OpenAI's protocol without its SDK, faster), an installed one or a Python file (default: "
        "by the model's name)",
    },
    "script": {"metavar": "FILE", "help": "replies for the scripted adapter (JSON Lines)"},
    "base-url": {"metavar": "URL", "help": "a server that speaks the adapter's protocol"},
    "temperature": {"type": amount, "metavar": "T", "help": "sampling temperature (default: 0)"},
    "max-tokens": {
        "type": count,
        "metavar": "N",
        "help": "tokens per reply (default: 1024, of a model that reasons 16000)",
    },
    "reasoning-effort": {
        "metavar": "WORD",
        "help": "none, low, medium, high, ... as it knows them",
    },
    "thinking-budget": {
        "type": count,
        "metavar": "N",
        "help": "tokens for thinking, of --max-tokens",
    },
    "extra-body": {"metavar": "JSON", "help": "an object of fields added to every request"},
    "extra-headers": {"metavar": "JSON", "help": "an object of headers; secret ones are not kept"},
    "seed": {
        "type": whole,
        "default": 0,
        "metavar": "N",
        "help": "seed of the calls and of --stratified (default: 0)",
    },
    "concurrency": {"type": count, "metavar": "N", "help": "concurrent calls (default: 32)"},
    "rpm": {"type": positive, "metavar": "N", "help": "requests per minute at most"},
    "tpm": {"type": positive, "metavar": "N", "help": "tokens per minute at most"},
    "context": {"type": count, "metavar": "N", "help": "context window in tokens, if not known"},
    "timeout": {"type": positive, "metavar": "SECONDS", "help": "per call (default: 300)"},
    "wait": {
        "type": positive,
        "metavar": "SECONDS",
        "help": "for a server that is still loading its model, at most (default: not at all)",
    },
    "max-cost": {"type": amount, "metavar": "DOLLARS", "help": "stop before costs exceed this"},
    "models": {
        "metavar": "FILE",
        "help": "windows, prices, parameters of models (TOML), before ours",
    },
    "prices": {"metavar": "FILE", "help": "price table that overrides the built-in one"},
    "dry-run": {"action": "store_true", "help": "estimate the cost without a call"},
    "yes": {"action": "store_true", "help": "do not ask before a run that costs more than $1"},
    "cache": {
        "metavar": "FILE",
        "help": "cached replies (default: TRAJUDGE_CACHE, or a file in ~/.cache/trajudge)",
    },
}


def call_options(group: Any, *names: str) -> None:
    """Add the options that say how a model is called: those of ``names``, by default all."""
    for name in names or CALL_OPTIONS:
        group.add_argument(f"--{name}", **CALL_OPTIONS[name])
