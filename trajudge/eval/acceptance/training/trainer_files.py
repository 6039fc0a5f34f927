"""The file beside the rows that tells a trainer how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from trajudge.eval.acceptance.training.settings import TrainingConfig

_TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}
_AXOLOTL = """\
datasets:
  - path: {path}
    ds_type: json
    type: chat_template
    field_messages: messages
    message_property_mappings:
      role: role
      content: content
    message_field_training: training
    roles_to_train: []
    train_on_eos: turn
"""


def trainer_files(config: TrainingConfig, files: Sequence[str]) -> dict[str, bytes]:
    """Return the files by name: LLaMA-Factory's ``dataset_info.json``, Axolotl's part of a
    configuration; none for the other formats."""
    if config.format == "llamafactory":
        info = {f"trajudge_{name.partition('.')[0]}": _info(name, config) for name in files}
        return {"dataset_info.json": orjson.dumps(info, option=orjson.OPT_INDENT_2) + b"\n"}
    if config.format == "axolotl":
        train = next((name for name in files if name.startswith("train.")), "train.jsonl")
        return {"axolotl.yml": _AXOLOTL.format(path=train).encode()}
    return {}


def _info(name: str, config: TrainingConfig) -> dict[str, Any]:
    columns = {"messages": "messages"} | ({"images": "images"} if config.with_screenshots else {})
    return {"file_name": name, "formatting": "sharegpt", "columns": columns, "tags": _TAGS}
