"""Rows of trainers that read chat messages: TRL, LLaMA-Factory, Axolotl, verl, OpenAI, the hub.

``folder`` is where the screenshots of the examples are; None: they are left out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trajudge.eval.acceptance.training.examples import TrainingExample, TrainingTurn
from trajudge.util.files import read_regular

# OpenAI's limit of images in one fine-tuning example.
MOST_IMAGES = 10
_PLACEHOLDER = re.compile(r"<(image|video|audio)>")


def parts(turns: Sequence[TrainingTurn], folder: Path | None) -> list[dict[str, Any]]:
    """Write turns as TRL and the hub read them: text, or parts where there are screenshots."""
    if not folder:
        return [{"role": turn.role, "content": turn.text} for turn in turns]
    return [{"role": turn.role, "content": _parts(turn)} for turn in turns]


def _parts(turn: TrainingTurn) -> list[dict[str, str | None]]:
    image: list[dict[str, str | None]] = [{"type": "image", "text": None}] if turn.image else []
    return [*image, {"type": "text", "text": turn.text}]


def trl_messages(example: TrainingExample, folder: Path | None) -> dict[str, Any]:
    """``{"messages"}``, for ``SFTTrainer`` with ``assistant_only_loss``."""
    return {"messages": parts(example.turns, folder)}


def trl_prompt_completion(example: TrainingExample, folder: Path | None) -> dict[str, Any]:
    """``{"prompt", "completion"}``: ``SFTTrainer`` learns the completion alone."""
    written = parts(example.turns, folder)
    return {"prompt": written[:-1], "completion": written[-1:]}


def trl_kto(example: TrainingExample, folder: Path | None) -> dict[str, Any]:
    """``{"prompt", "completion", "label"}``, for ``KTOTrainer``."""
    return {**trl_prompt_completion(example, folder), "label": example.success}


def trl_preference(example: TrainingExample, folder: Path | None) -> dict[str, Any]:
    """``{"prompt", "chosen", "rejected", "margin"}``, for ``DPOTrainer`` and ``RewardTrainer``."""
    written = parts(example.turns, folder)
    rejected = [] if example.rejected is None else parts([example.rejected], folder)
    return {
        "prompt": written[:-1],
        "chosen": written[-1:],
        "rejected": rejected,
        "margin": example.margin,
    }


def llamafactory(example: TrainingExample, folder: Path | None) -> dict[str, Any]:
    """``{"messages", "images"}`` in the ShareGPT layout: a placeholder per image."""
    row: dict[str, Any] = {"messages": [_with_placeholder(turn) for turn in example.turns]}
    return {**row, "images": example.images} if folder else row


def axolotl(example: TrainingExample, folder: Path | None) -> dict[str, Any]:
    """``{"messages"}`` for ``type: chat_template``, each with ``training``."""
    messages = []
    for turn in example.turns:
        content: Any = turn.text
        if folder:
            text = {"type": "text", "text": turn.text}
            content = [{"type": "image", "path": turn.image}, text] if turn.image else [text]
        messages.append({"role": turn.role, "content": content, "training": turn.learned})
    return {"messages": messages}


def verl(example: TrainingExample, folder: Path | None) -> dict[str, Any]:
    """One task for reinforcement learning: the first page as ``prompt``, no answer to it.

    ``extra_info`` names the recorded run, not as ``trajectory_id``: that is of the new rollout.
    """
    origin, first = example.origin, example.turns[:2]
    names = ("benchmark", "task_id", "agent", "attempt")
    row = {
        "data_source": f"trajudge/{origin['benchmark']}",
        "prompt": [_with_placeholder(turn) for turn in first],
        "ability": "web",
        "reward_model": {"style": "model", "ground_truth": ""},
        "extra_info": {name: origin[name] for name in names},
    }
    return {**row, "images": [turn.image for turn in first if turn.image]} if folder else row


def openai_sft(example: TrainingExample, folder: Path | None) -> dict[str, Any] | None:
    """``{"messages"}`` of OpenAI's fine-tuning; None for more images than an example may have."""
    if len(example.images) > MOST_IMAGES:
        return None
    messages = []
    for turn in example.turns:
        message: dict[str, Any] = {"role": turn.role, "content": turn.text}
        if folder and turn.image:
            image = {"type": "image_url", "image_url": {"url": _data_url(folder / turn.image)}}
            message["content"] = [image, {"type": "text", "text": turn.text}]
        if turn.role == "assistant":
            message["weight"] = int(turn.learned)
        messages.append(message)
    return {"messages": messages}


def _with_placeholder(turn: TrainingTurn) -> dict[str, str]:
    """Put ``<image>`` before the text; what a page wrote in this form is no placeholder."""
    text = _PLACEHOLDER.sub(r"< \1>", turn.text)
    return {"role": turn.role, "content": f"<image>{text}" if turn.image else text}


def _data_url(file: Path) -> str:
    kind = "png" if file.suffix == ".png" else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(read_regular(file)).decode()}"
