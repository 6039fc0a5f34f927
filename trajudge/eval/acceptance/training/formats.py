"""The layouts of training data by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trajudge.eval.acceptance.training import chat_rows
from trajudge.eval.acceptance.training.examples import TrainingExample
from trajudge.eval.acceptance.training.names import FormatName, Per
from trajudge.eval.acceptance.training.settings import TrainingConfig
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from datasets import Features

Row = Callable[[TrainingExample, Path | None], dict[str, Any] | None]


class TrainingFormat(NamedTuple):
    """``row`` writes an example (None: the trainer does not take it); ``per`` are the units that it
    takes, the default first; ``both``: it learns from rejected runs too; ``columns`` are those of
    Parquet that hold messages (empty: the format is JSON lines), ``others`` its further ones."""

    row: Row
    per: tuple[Per, ...] = ("trajectory", "step")
    both: bool = False
    columns: tuple[str, ...] = ()
    others: Mapping[str, str] = {}


FORMATS: dict[FormatName, TrainingFormat] = {
    "trl-messages": TrainingFormat(chat_rows.trl_messages, columns=("messages",)),
    "trl-prompt-completion": TrainingFormat(
        chat_rows.trl_prompt_completion, ("step",), columns=("prompt", "completion")
    ),
    "trl-preference": TrainingFormat(
        chat_rows.trl_preference,
        ("step",),
        both=True,
        columns=("prompt", "chosen", "rejected"),
        others={"margin": "float64"},
    ),
    "trl-kto": TrainingFormat(
        chat_rows.trl_kto,
        ("step",),
        both=True,
        columns=("prompt", "completion"),
        others={"label": "bool"},
    ),
    "llamafactory": TrainingFormat(chat_rows.llamafactory),
    "axolotl": TrainingFormat(chat_rows.axolotl),
    "verl": TrainingFormat(
        chat_rows.verl,
        ("trajectory",),
        columns=("prompt",),
        others={"data_source": "string", "ability": "string"},
    ),
    "openai-sft": TrainingFormat(chat_rows.openai_sft),
    "hf": TrainingFormat(chat_rows.trl_messages, columns=("messages",)),
}


def unit(config: TrainingConfig) -> Per:
    """Return whether a row is a trajectory or a step. Raises UserError for one that the format
    does not have."""
    known = FORMATS[config.format].per
    if config.per is not None and config.per not in known:
        raise UserError(f"--per {config.per}: a row of --format {config.format} is a {known[0]}")
    return config.per or known[0]


def features(config: TrainingConfig) -> Features:
    """Return the columns of a format that is Parquet."""
    from datasets import Features, Image, List, Value  # noqa: PLC0415 - slow to import

    layout = FORMATS[config.format]
    text = Value("string")
    shown = config.with_screenshots and config.format != "verl"
    content: Any = List({"type": text, "text": text}) if shown else text
    made: dict[str, Any] = {
        name: List({"role": text, "content": content}) for name in layout.columns
    }
    made |= {name: Value(kind) for name, kind in layout.others.items()}
    if config.format == "verl":
        made["reward_model"] = {"style": text, "ground_truth": text}
        made["extra_info"] = {
            **dict.fromkeys(("benchmark", "task_id", "agent", "split"), text),
            "attempt": Value("int64"),
        }
    if config.with_screenshots:
        made["images"] = List(Image())
    return Features({**made, "trajudge": _origin_features()})


def _origin_features() -> dict[str, Any]:
    from datasets import Value  # noqa: PLC0415 - slow to import

    texts = ("benchmark", "agent", "task_id", "judge", "decision", "credit")
    numbers = ("score", "threshold", "precision_at_least", "confidence")
    return {
        **dict.fromkeys(texts, Value("string")),
        **dict.fromkeys(numbers, Value("float64")),
        **dict.fromkeys(("attempt", "step"), Value("int64")),
    }
