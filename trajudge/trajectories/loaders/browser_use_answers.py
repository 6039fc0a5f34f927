"""Final answers without their runs, as browser-use published them for Online-Mind2Web's tasks.

JSON Lines of ``task_id, task, final_result_response, judge {score, reasoning}``: no step and no
screenshot, so a judge that needs one skips the run. The publisher's own verdict is never read into
a trajectory (``LEAKS``): ``annotations.answers`` makes published verdicts of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from trajudge.trajectories.loaders._files import readable
from trajudge.trajectories.loaders._run import PlacedRun, RunFile, Values
from trajudge.trajectories.model import (
    Loaded,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.util import jsonl as python_json

KIND = "browser-use-answers"
BENCHMARK = "online-mind2web"
AGENT = "browser-use"
LEAKS = ("results.jsonl:judge",)
FILE = RunFile(KIND, "results.jsonl", (b'"task_id"', b'"final_result_response"'), "answers")
detect = FILE.detected


class _Answer(msgspec.Struct):
    task_id: str | int
    task: Any
    final_result_response: Any = None


_ANSWER = msgspec.json.Decoder(_Answer)


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield a run without steps per answer, in file order. Raises UserError if there is no such
    file."""
    for line in placed_answers(path):
        if isinstance(line, Unreadable):
            yield line
        elif want(line.key):
            answer = python_json.decode(line.data, _ANSWER)
            values = Values()
            yield Trajectory(
                key=line.key,
                raw_task_id=line.key.task_id,
                goal=values.text(answer.task, "task") or "",
                answer=values.text(answer.final_result_response, "final_result_response"),
                metadata={"warnings": [*values.warnings]} if values.warnings else {},
            )


def placed_answers(path: Path) -> Iterator[PlacedRun | Unreadable]:
    """Yield every line with its run's key. Raises UserError if there is no such file."""
    return FILE.runs(path, _identify)


def _identify(_: Path, line: bytes) -> TrajectoryKey:
    task = readable(str(python_json.decode(line, _ANSWER).task_id))
    return TrajectoryKey(benchmark=BENCHMARK, agent=AGENT, task_id=task)
