"""Load training data with the trainers' own code, and print what each would learn.

``python -m tests.eval.trainer_loads SITE_PACKAGES FOLDER`` reads ``FOLDER``/FORMAT and
prints a JSON object: per format the texts whose tokens have labels. A program of its own, so that
the tests need no torch.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.append(sys.argv[1])
# ruff: noqa: E402 - what is imported is no garbage: each trainer would look for some in all of it
gc.disable()

import torch
from datasets import load_dataset
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

END = "<|im_end|>"
SPECIAL = ["<pad>", "<|im_start|>", END]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A token a byte, so that what is learned can be read back exactly."""
    alphabet = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE({byte: n for n, byte in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token=END, model_max_length=4096
    )
    made.chat_template = TEMPLATE
    return made


TOKENIZER = byte_tokenizer()


def model() -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = Qwen2Config(vocab_size=len(TOKENIZER), eos_token_id=258, **size, **heads)
    return Qwen2ForCausalLM(config)


def learned(ids: Any, labels: Any) -> list[str]:
    """The stretches of tokens that have a label."""
    stretches: list[list[int]] = []
    inside = False
    for token, label in zip(list(map(int, ids)), list(map(int, labels)), strict=True):
        if label != -100 and not inside:
            stretches.append([])
        inside = label != -100
        if inside:
            stretches[-1].append(token)
    return [TOKENIZER.decode(part).replace(END, "").strip() for part in stretches]


def settings(kind: Any, folder: Path, **others: Any) -> Any:
    return kind(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=1,
        max_steps=1,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        **others,
    )


def rows(folder: Path, name: str) -> Any:
    return load_dataset(str(folder / name), split="train").remove_columns("trajudge")


def sft(folder: Path, name: str, **others: Any) -> list[list[str]]:
    from trl import SFTConfig, SFTTrainer

    trainer = SFTTrainer(
        model=model(),
        args=settings(SFTConfig, folder, max_length=4096, shuffle_dataset=False, **others),
        train_dataset=rows(folder, name),
        processing_class=TOKENIZER,
    )
    trainer.train()
    found = []
    for row in trainer.train_dataset:
        batch = trainer.data_collator([row])
        found.append(learned(batch["input_ids"][0], batch["labels"][0]))
    return found


def preference(folder: Path) -> list[list[str]]:
    from trl import DPOConfig, DPOTrainer

    trainer = DPOTrainer(
        model=model(),
        ref_model=model(),
        args=settings(DPOConfig, folder, max_length=4096),
        train_dataset=rows(folder, "trl-preference"),
        processing_class=TOKENIZER,
    )
    trainer.train()
    found = []
    for row in trainer.train_dataset:
        texts = [TOKENIZER.decode(row[name]) for name in ("chosen_ids", "rejected_ids")]
        found.append([text.replace(END, "").strip() for text in texts])
    return found


def kto(folder: Path) -> list[list[Any]]:
    from trl import KTOConfig, KTOTrainer

    arguments = settings(KTOConfig, folder, max_length=4096)
    arguments.per_device_train_batch_size = 2
    trainer = KTOTrainer(
        model=model(),
        ref_model=model(),
        args=arguments,
        train_dataset=rows(folder, "trl-kto"),
        processing_class=TOKENIZER,
    )
    trainer.train()
    texts = [TOKENIZER.decode(row["completion_ids"]) for row in trainer.train_dataset]
    labels = [row["label"] for row in trainer.train_dataset]
    return [
        [label, [text.replace(END, "").strip()]] for label, text in zip(labels, texts, strict=True)
    ]


def llamafactory(folder: Path) -> list[Any]:
    os.environ["DISABLE_VERSION_CHECK"] = "1"  # of transformers: its converter alone is used
    # It imports torchaudio, which has no build for this torch; no row here is audio.
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    sys.modules["torchaudio"].__spec__ = ModuleSpec("torchaudio", None)
    from llamafactory.data.converter import align_dataset
    from llamafactory.data.parser import get_dataset_list
    from llamafactory.hparams import DataArguments
    from transformers import TrainingArguments

    place = folder / "llamafactory"
    arguments = DataArguments(dataset_dir=str(place), media_dir=str(place))
    (described,) = get_dataset_list(["trajudge_train"], str(place))
    raw = load_dataset("json", data_files=str(place / described.dataset_name), split="train")
    aligned = align_dataset(raw, described, arguments, TrainingArguments(report_to=[]))
    return [
        {name: row[f"_{name}"] for name in ("prompt", "response", "system", "images")}
        for row in aligned
    ]


def axolotl(folder: Path) -> list[list[str]]:
    import yaml
    from axolotl.prompt_strategies.chat_template import load
    from axolotl.utils.dict import DictDefault

    place = folder / "axolotl"
    (described,) = yaml.safe_load((place / "axolotl.yml").read_text())["datasets"]
    config = DictDefault({"sequence_len": 4096, "train_on_inputs": False})
    strategy = load(TOKENIZER, config, {**described, "chat_template": "tokenizer_default"})
    raw = load_dataset("json", data_files=str(place / described["path"]), split="train")
    found = []
    for row in raw:
        made = strategy.tokenize_prompt(row)
        found.append(learned(made["input_ids"], made["labels"]))
    return found


def verl(folder: Path) -> list[Any]:
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    config = OmegaConf.create({"max_prompt_length": 4096, "cache_dir": str(folder / "verl-cache")})
    made = RLHFDataset(str(folder / "verl" / "train.parquet"), TOKENIZER, config)
    names = ("raw_prompt", "data_source", "extra_info")
    return [{name: row[name] for name in names} for row in map(made.__getitem__, range(len(made)))]


def main(folder: Path) -> None:
    import trl  # noqa: F401 - among what is imported

    gc.freeze()
    found = {
        "trl-messages": sft(folder, "trl-messages", assistant_only_loss=True),
        "trl-prompt-completion": sft(folder, "trl-prompt-completion"),
        "trl-preference": preference(folder),
        "trl-kto": kto(folder),
        "llamafactory": llamafactory(folder),
        "axolotl": axolotl(folder),
        "verl": verl(folder),
    }
    sys.stdout.write(json.dumps(found, default=str) + "\n")


main(Path(sys.argv[2]))
