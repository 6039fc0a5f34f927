"""A small run of judges, written as the main job writes it, with the trajectories beside it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.eval.cases import call, key, label, said
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Judgment
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory


class Task(NamedTuple):
    """One trajectory: what the judge said and what is true."""

    name: str
    truth: bool | None
    verdict: bool | None
    goal: str = "Buy a mug"
    answer: str | None = "Done."
    reasoning: str = "The order stands there."
    action: str = "click('12')"
    url: str = "http://shop.test/order"


def png(width: int = 400, height: int = 300, shade: int = 90) -> bytes:
    """A picture of one colour."""

    def chunk(name: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + crc

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\x00" + bytes((shade, 120, 160)) * width) * height
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*part) for part in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    )


def write_run(folder: Path, tasks: Sequence[Task], *, judge: str = "judge") -> Path:
    """Write the run ``folder/judge`` and its data ``folder/data``; return the run."""
    data = folder / "data"
    store.write(data, [trajectory(task, at) for at, task in enumerate(tasks)])
    run = folder / judge
    run.mkdir(parents=True)
    judgments = [judgment(task, judge) for task in tasks]
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(run, [label(task.name, task.truth) for task in tasks])
    write_rewards(run, {key(task.name): float(bool(task.verdict)) for task in tasks})
    write_manifest(run, {"judge": judge, "data": f"trajudge:{data}", "protocol": "default"})
    return run


def judgment(task: Task, judge: str) -> Judgment:
    return said(
        task.name, task.verdict, judge=judge, reasoning=task.reasoning, score=0.8, calls=(call(),)
    )


def trajectory(task: Task, number: int) -> Trajectory:
    place = key(task.name)
    shot = ImageRef(data=png(shade=number % 256))
    seen = Observation(url=task.url, axtree="RootWebArea 'Shop'", screenshot=shot)
    steps = (Step(index=0, observation=seen, action=task.action), Step(index=1, observation=seen))
    return Trajectory(
        key=place, raw_task_id=place.task_id, goal=task.goal, answer=task.answer, steps=steps
    )
