"""Task folders of webeval, Fara's evaluation: ``web_surfer.log``, ``*_final_answer.json``,
screenshots, ``times.json`` and, after a verifier has seen the run, ``task_data.json``.

The goal stands in ``task_data.json`` alone; all else there and in ``scores/`` is the verifier's
(``LEAKS``) and never read here: ``annotations.fara`` makes verdicts of it. The agent is the name of
the folder that holds the task folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from trajudge.trajectories.loaders.fara.events import Turn, read_turns
from trajudge.trajectories.loaders.fara.frames import frames_of, steps_of
from trajudge.trajectories.loaders.files import (
    Damaged,
    TrajectorySource,
    decode,
    name_of,
    numbers,
    read_all,
)
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.jsonl import read_lines
from trajudge.trajectories.util.safe_files import DataFolder

KIND = "fara"
LEAKS = (
    *("core.log", "scores/*.json:score", "scores/*.json:gpt_response_text"),
    *("task_data.json:is_success", "task_data.json:solver_predicted_output"),
    *("task_data.json:verifier_rubric", "task_data.json:verifier_agent_response"),
    *("task_data.json:precomputed_rubric", "task_data.json:intermediate_mm_rubric_steps"),
    *("task_data.json:majority_vote_metadata", "task_data.json:multimodal_verifier_response"),
)
LOG = "web_surfer.log"
NO_ANSWER = "<no_answer>"
_ANSWER = "_answer.json"
_TASK = "task_data.json"
_TIMES = "times.json"
_DEFAULT_AGENT = "fara"
# Task folders, folders of one agent's, and folders of those.
_LEVELS = 2


class _Answer(msgspec.Struct):
    final_answer: Any = None
    screenshots: list[Any] | None = None
    is_aborted: Any = False
    token_usage: Any = None


def detect(path: Path) -> bool:
    """Tell whether the folder is a task folder or holds one."""
    return path.is_dir() and next(_folders(path, 1), None) is not None


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the runs of the task folders at the path, in the order of their keys.

    Raises UserError if there is none.
    """
    return read_all(task_folders(path), _read, want)


def task_folders(path: Path) -> list[TrajectorySource]:
    """List the task folders at the path by their keys: itself, or those at most two levels down.

    Raises UserError if there is none.
    """
    if not path.is_dir():
        raise UserError(f"{path} is no folder: --data {KIND}:PATH needs folders with {LOG}")
    root = DataFolder(path)
    try:
        folders = list(_folders(path, _LEVELS))
    except OSError as error:
        raise UserError(f"{path} cannot be listed ({error.strerror}): check its access") from None
    if not folders:
        raise UserError(
            f"{path} holds no {KIND} trajectory: --data {KIND}:PATH needs folders with {LOG} and "
            f"*_final{_ANSWER}"
        )
    sources = (_source(root, folder) for folder in folders)
    return sorted(sources, key=lambda source: source.key.order)


def _folders(path: Path, levels: int) -> Iterator[Path]:
    if (path / LOG).is_file() and any(path.glob(f"*{_ANSWER}")):
        yield path
    elif levels:
        for child in sorted(path.iterdir()):
            if child.is_dir():
                yield from _folders(child, levels - 1)


def _source(root: DataFolder, folder: Path) -> TrajectorySource:
    name = name_of(folder)
    agent = name_of(folder.resolve().parent) or _DEFAULT_AGENT
    key = TrajectoryKey(benchmark=KIND, agent=agent, task_id=name)
    return TrajectorySource(key, name, folder, root)


def _read(source: TrajectorySource) -> Trajectory:
    folder, root = source.path, source.data
    warnings: list[str] = []
    values = Values(warnings)
    answers = sorted(folder.glob(f"*{_ANSWER}"))
    if len(answers) != 1:
        raise Damaged(f"holds {len(answers)} files *{_ANSWER}, where exactly one is expected")
    answer = decode(root, answers[0], _Answer)
    goal = _goal(root, folder, values)
    aborted = values.flag(answer.is_aborted, "is_aborted") or False
    seconds = _seconds(root, folder, values)
    turns = read_turns(_lines(folder / LOG, root, warnings), warnings)
    frames = frames_of(folder, answer.screenshots, root, warnings)
    return Trajectory(
        key=source.key,
        raw_task_id=source.raw_task_id,
        goal=goal,
        steps=steps_of(turns, frames, warnings),
        answer=answer_of(answer.final_answer, values),
        **ending(turns, aborted=aborted, warnings=warnings),
        telemetry=_telemetry(turns, answer, seconds),
    )


def answer_of(value: object, values: Values) -> str | None:
    """Return the agent's answer, None where it gave none."""
    answer = values.text(value, "final_answer")
    return None if answer == NO_ANSWER else answer


def ending(turns: list[Turn], *, aborted: bool, warnings: list[str]) -> dict[str, Any]:
    """Return how the run ended, as a trajectory's fields: a run over its budget is ``truncated``,
    one that broke off has ``metadata["aborted"]``."""
    terminated = bool(turns) and turns[-1].is_last
    return {
        "terminated": terminated,
        "truncated": not terminated and not aborted,
        "metadata": {"aborted": aborted, "warnings": [*warnings]},
    }


def _goal(root: DataFolder, folder: Path, values: Values) -> str:
    """Return the goal, "" where no verifier has written it yet: ``--goals`` then gives it."""
    task = _optional(root, folder / _TASK, values)
    goals = (values.text(task.get(name), name) for name in ("task_proposal", "task_summary"))
    return next(filter(None, goals), "")


def _optional(root: DataFolder, path: Path, values: Values) -> dict[str, Any]:
    """Read a file that a run need not have; one that cannot be read is a warning."""
    try:
        return decode(root, path, dict[str, Any]) if path.is_file() else {}
    except Damaged as error:
        values.warnings.append(f"{path.name} is not read: {error}.")
        return {}


def _lines(path: Path, root: DataFolder, warnings: list[str]) -> Iterator[bytes]:
    try:
        for line in read_lines(path, folder=root):
            if line.problem:
                warnings.append(f"Line {line.number} of the log: {line.problem}.")
            else:
                yield line.data
    except UserError as error:
        raise Damaged(str(error)) from None


def _seconds(root: DataFolder, folder: Path, values: Values) -> dict[str, float]:
    duration = values.number(_optional(root, folder / _TIMES, values).get("duration"), "duration")
    return {} if duration is None else {"cum_agent_elapsed": duration}


def _telemetry(turns: list[Turn], answer: _Answer, seconds: dict[str, float]) -> dict[str, float]:
    """Return steps, seconds and tokens, the tokens added up over the agent's components."""
    usage = answer.token_usage if isinstance(answer.token_usage, dict) else {}
    parts = [part for part in usage.values() if isinstance(part, dict)]
    tokens = {
        name: sum(numbers({name: part.get(kind)}).get(name, 0.0) for part in parts)
        for name, kind in (
            ("cum_input_tokens", "prompt_tokens"),
            ("cum_output_tokens", "completion_tokens"),
        )
        if any(kind in part for part in parts)
    }
    return {"n_steps": float(len(turns)), **seconds, **tokens}
