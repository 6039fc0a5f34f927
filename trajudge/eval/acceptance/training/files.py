"""Rows of training data as files: JSON lines, or Parquet with the screenshots inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from trajudge.eval.acceptance.acceptance import put_line
from trajudge.eval.acceptance.training.examples import TrainingExample
from trajudge.eval.acceptance.training.formats import FORMATS, features
from trajudge.eval.acceptance.training.settings import TrainingConfig
from trajudge.util.files import open_regular, read_regular

NOT_TAKEN = "more images than the trainer takes"
PROVENANCE = "provenance"


def write_rows(
    examples: Iterable[tuple[str, TrainingExample]],
    config: TrainingConfig,
    folder: Path,
    screenshots: Path,
) -> Counter[str]:
    """Write the rows of each file (train, test), and count them.

    ``screenshots`` is the folder that the examples' images stand in. Raises OSError.
    """
    layout = FORMATS[config.format]
    images = screenshots if config.with_screenshots else None
    counts: Counter[str] = Counter()
    with TemporaryDirectory(dir=folder) as scratch, ExitStack() as stack:
        staged: dict[str, Any] = {}
        for name, example in examples:
            row = layout.row(example, images)
            if row is None:
                counts[NOT_TAKEN] += 1
                continue
            counts[name] += 1
            for file, line in _lines(name, row, example, config):
                if file not in staged:
                    staged[file] = stack.enter_context((Path(scratch) / file).open("wb"))
                put_line(staged[file], line)
        for name, file in staged.items():
            file.close()
            if layout.columns:
                _to_parquet(Path(file.name), folder / f"{name}.parquet", config, images)
            else:
                Path(file.name).replace(folder / f"{name}.jsonl")
    return counts


def _lines(
    name: str, row: dict[str, Any], example: TrainingExample, config: TrainingConfig
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a row by file: OpenAI takes no column of ours."""
    if config.format == "openai-sft":
        yield name, row
        yield f"{name}-{PROVENANCE}", example.origin
        return
    if FORMATS[config.format].columns and config.with_screenshots:
        row = {"images": example.images, **row}
    if config.format == "verl":  # verl's own data sets say the split there
        row = {**row, "extra_info": {**row["extra_info"], "split": name}}
    yield name, {**row, "trajudge": example.origin}


def _to_parquet(staged: Path, target: Path, config: TrainingConfig, images: Path | None) -> None:
    import datasets  # noqa: PLC0415 - slow to import

    datasets.disable_progress_bars()
    with TemporaryDirectory(dir=target.parent) as cache:
        places = {"staged": str(staged), "images": None if images is None else str(images)}
        made = datasets.Dataset.from_generator(
            _rows, features=features(config), gen_kwargs=places, cache_dir=cache
        )
        made.to_parquet(str(target))


def _rows(staged: str, images: str | None) -> Iterator[dict[str, Any]]:
    with open_regular(staged) as file:
        for line in file:
            row = orjson.loads(line)
            if images is not None:
                row["images"] = [
                    {"bytes": read_regular(Path(images) / name), "path": Path(name).name}
                    for name in row["images"]
                ]
            yield row
