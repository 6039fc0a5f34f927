"""Online-Mind2Web submissions: ``<task_id>/result.json`` and screenshots in ``trajectory/``.

A result with a ``schema_version`` is of version 2 (``online_mind2web_v2``). In version 1,
``trajectory/N_full_screenshot.png`` is what the agent saw after its action N, counted from 1 (0 is
the page it started on), so step i, counted from 0, observes screenshot i, and the last one stands
on a last step without an action; a number that no file has was never recorded: published
submissions leave some out. The format names no agent: it is the name of the folder that holds the
task folders. A suffix on the task id (``<task_id>_110325``) tells repeated submissions apart; the
key has the id without it, and the attempt counts submissions of one task in the order of their
folders' names.
There is no official reward; the experts' labels are read by ``annotations.online_mind2web``.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from trajudge.trajectories.loaders.files import (
    Damaged,
    RunFolders,
    TrajectorySource,
    decode,
    name_of,
    number_attempts,
    read_all,
    screenshot,
    text,
)
from trajudge.trajectories.loaders.online_mind2web_v2 import SCHEMA, failed_actions, read_v2
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.util.safe_files import DataFolder

KIND = "online-mind2web"
LEAKS = ("result.json:reference_length", "result.json:result_status")
_RESULT = "result.json"
_SUFFIXED = re.compile(r"([0-9a-f]{32})_\w+")
_SCREENSHOT = re.compile(r"(\d{1,4})_full_screenshot\.(?:png|jpe?g)")


class _Id(msgspec.Struct):
    task_id: Any = None


class _Version(msgspec.Struct):
    schema_version: Any = None


class _Result(_Id):
    task: Any = None
    final_result_response: Any = None
    result_status: Any = None
    action_history: list[Any] = []
    thoughts: list[Any] = []


def _is_task(folder: Path) -> bool:
    return (folder / _RESULT).is_file() and (folder / "trajectory").is_dir()


def _is_part(folder: Path) -> bool:
    return (folder / _RESULT).is_file() or (folder / "trajectory").is_dir()


FOLDERS = RunFolders(KIND, f"folders with {_RESULT} and trajectory/", _is_task, _is_part)
detect = FOLDERS.detected


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the task folder, or every one directly inside, in the order of their keys.

    Raises UserError if there is none.
    """
    root, folders = DataFolder(path), FOLDERS.of(path)
    return read_all(number_attempts(_source(root, folder) for folder in folders), _read, want)


def _source(root: DataFolder, folder: Path) -> TrajectorySource:
    """Make the source with the key by ``result.json``, or by the folder's name where that cannot be
    read."""
    try:
        stated = decode(root, folder / _RESULT, _Id).task_id
        raw = Values([]).name(stated, "task_id") or name_of(folder)
    except Damaged:
        raw = name_of(folder)
    suffixed = _SUFFIXED.fullmatch(raw)
    agent = name_of(folder.resolve().parent)
    key = TrajectoryKey(benchmark=KIND, agent=agent, task_id=suffixed[1] if suffixed else raw)
    return TrajectorySource(key, raw, folder, root)


def _read(source: TrajectorySource) -> Trajectory:
    version = decode(source.data, source.path / _RESULT, _Version).schema_version
    if not (source.path / "trajectory").is_dir():
        raise Damaged("the folder trajectory/, with the screenshots, is missing")
    if version is not None:
        return _read_v2(source, version)
    result = decode(source.data, source.path / _RESULT, _Result)
    warnings: list[str] = []
    values = Values(warnings)
    goal = values.text(result.task, "task")
    if goal is None:
        raise Damaged(f"{_RESULT} has no task")
    values.name(result.task_id, "task_id")
    if len(result.action_history) != len(result.thoughts):
        warnings.append(
            f"{len(result.action_history)} actions but {len(result.thoughts)} thoughts."
        )
    pairs = [*zip_longest(result.action_history, result.thoughts)]
    images = _screenshots(source, len(pairs), warnings)
    if images and max(images) == len(pairs):
        pairs.append((None, None))
    steps = tuple(
        Step(
            index=index,
            observation=Observation(screenshot=images.get(index)),
            action=values.text(action, "action", f"of step {index}"),
            reasoning=values.text(thought, "thought", f"of step {index}"),
        )
        for index, (action, thought) in enumerate(pairs)
    )
    answer = values.text(result.final_result_response, "final_result_response")
    status = values.text(result.result_status, "result_status")
    return Trajectory(
        key=source.key,
        raw_task_id=source.raw_task_id,
        goal=goal,
        steps=steps,
        answer=answer,
        telemetry={"n_steps": float(len(result.action_history))},
        metadata={"result_status": status, "warnings": [*warnings]},
    )


def _read_v2(source: TrajectorySource, version: object) -> Trajectory:
    if version != SCHEMA:
        raise Damaged(
            f"{_RESULT}: schema_version is {version!r}: this trajudge reads {SCHEMA}, and results "
            "of version 1, which have no schema_version"
        )
    result = decode(source.data, source.path / _RESULT, dict[str, Any])
    warnings: list[str] = []
    try:
        steps = read_v2(result, source.path / "trajectory", source.data, warnings)
    except Damaged as error:
        raise Damaged(f"{_RESULT}: {error}") from None
    return Trajectory(
        key=source.key,
        raw_task_id=source.raw_task_id,
        goal=text(result["task"]) or "",
        steps=steps,
        answer=text(result["agent_final_answer"]),
        terminated=True,
        telemetry={"n_steps": float(len(steps)), "n_err": float(failed_actions(result))},
        metadata={"warnings": [*warnings]},
    )


def _screenshots(
    source: TrajectorySource, last: int, warnings: list[str]
) -> dict[int, ImageRef | None]:
    """Find the screenshots by number, without those beyond ``last``; problems go to
    ``warnings``."""
    files = {
        int(match[1]): path
        for path in (source.path / "trajectory").iterdir()
        if (match := _SCREENSHOT.fullmatch(path.name))
    }
    screenshots: dict[int, ImageRef | None] = {}
    for number, path in sorted(files.items()):
        if number <= last:
            screenshots[number] = screenshot(path, source.data, warnings)
        else:
            warnings.append(f"The screenshot {path.name} belongs to no action.")
    missing = [
        number for number in range(1, max(screenshots, default=0)) if number not in screenshots
    ]
    warnings.extend(f"There is no screenshot of number {number}." for number in missing)
    return screenshots
