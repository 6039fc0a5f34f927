"""Final answers without their runs, as browser-use published them for Online-Mind2Web's tasks.

JSON Lines of ``task_id, task, final_result_response, judge {score, reasoning}``, without steps and
screenshots, so that a judge that needs one skips the run. The publisher's own verdict is never read
into a trajectory (``LEAKS``); ``annotations.answers`` reads it as a published verdict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from trajudge.trajectories.loaders._files import readable
from trajudge.trajectories.loaders._run import PlacedRun, RunFile, Values
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util import jsonl as python_json

KIND = "browser-use-answers"
BENCHMARK = "online-mind2web"
AGENT = "browser-use"
LEAKS = ("results.jsonl:judge",)


class _Answer(msgspec.Struct):
    task_id: str | int
    task: Any
    final_result_response: Any = None


_ANSWER = msgspec.json.Decoder(_Answer)


def _identify(_: Path, line: bytes) -> TrajectoryKey:
    task = readable(str(python_json.decode(line, _ANSWER).task_id))
    return TrajectoryKey(benchmark=BENCHMARK, agent=AGENT, task_id=task)


def _read(line: PlacedRun) -> Trajectory:
    """Return a run without steps for an answer."""
    answer, values = python_json.decode(line.data, _ANSWER), Values()
    goal = values.text(answer.task, "task") or ""
    words = values.text(answer.final_result_response, "final_result_response")
    return Trajectory(
        key=line.key,
        raw_task_id=line.key.task_id,
        goal=goal,
        answer=words,
        metadata={"warnings": [*values.warnings]} if values.warnings else {},
    )


_MARKS = (b'"task_id"', b'"final_result_response"')
FILE = RunFile(KIND, "results.jsonl", _MARKS, "answers", _identify, _read)
detect, load = FILE.detect, FILE.load
