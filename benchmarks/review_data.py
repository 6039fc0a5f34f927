"""Trajectories with screenshots for the benchmarks of the review application, quickly written."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import orjson
from PIL import Image

from trajudge.trajectories.model import TrajectoryKey

SHOT_BYTES = 100_000
_TREE = "RootWebArea 'Shop'\n" + "\n".join(f"\t[{n}] link 'Item {n}'" for n in range(200))


def write_trajectories(
    folder: Path, count: int, steps: int, key_of: Callable[[int], TrajectoryKey]
) -> None:
    """Write ``count`` trajectories of ``steps`` steps in trajudge's own format, each step with a
    screenshot of its own: 1280 x 720 pixels in a sparse file of ``SHOT_BYTES``."""
    images = folder / "images"
    images.mkdir(parents=True)
    buffer = BytesIO()
    Image.new("RGB", (1280, 720), (240, 240, 235)).save(buffer, "PNG")
    with (folder / "trajectories.jsonl").open("wb") as file:
        for number in range(count):
            names = [f"{number * steps + step:064x}" for step in range(steps)]
            for name in names:
                _write_sparse(images / f"{name}.png", buffer.getvalue() + name.encode())
            file.write(orjson.dumps(_line(number, names, key_of(number))) + b"\n")


def _write_sparse(path: Path, head: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, head)
    os.ftruncate(descriptor, SHOT_BYTES)
    os.close(descriptor)


def _line(number: int, names: list[str], key: TrajectoryKey) -> dict[str, object]:
    steps = [
        {
            "index": step,
            "observation": {
                "url": f"http://shop.test/{number}/{step}",
                "axtree": _TREE,
                "screenshot": name,
            },
            "reasoning": "The item that the goal names is in the list. " * 9,
            "action": f"click('{step}')",
        }
        for step, name in enumerate(names)
    ]
    return {
        "format": 1,
        "key": key.model_dump(mode="json"),
        "raw_task_id": key.task_id,
        "goal": f"Order item {number} and report its code. " * 4,
        "answer": f"The code is {number}. " * 9,
        "steps": steps,
    }
