"""browser-use's history files: ``AgentHistoryList.save_to_file`` writes ``{"history": [item]}``.

The form changed with its releases and no file says which it is, so that every field is taken where
it stands (``browser_use_items``). The task is not in the file: it comes from ``--goals``, from a
``task.json`` beside it, or from the request that recent releases repeat to the model. The task id
is the file's name, or its folder's where that is one of the package's own; the agent is the name of
the folder above. The package's own verdict (``LEAKS``) is never read here.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Raw

from trajudge.trajectories.loaders import files
from trajudge.trajectories.loaders.common import detection
from trajudge.trajectories.loaders.common.lazy_json import (
    NULL,
    decoded,
    elements,
    fields,
    read_object,
    string,
)
from trajudge.trajectories.loaders.logs.browser_use_items import Item, read_item, steps_of
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder

KIND = "browser-use"
LEAKS = ("*.json:history[*].result[*].judgement", "*.json:history[*].result.judgement")
MAX_STEPS = 10_000
_LEVELS = 4
_START = re.compile(rb'\s*\{.{0,4096}?"history"\s*:\s*\[\s*\{', re.DOTALL)
_ITEM = (b'"model_output"', b'"result"', b'"state"')
# The package's own names, and those that other tools give files of theirs, too.
_OWN_NAMES = {"agenthistorylist", "agenthistory"}
_COMMON_NAMES = {"agent_history", "history"}
_REQUEST = re.compile(r"<user_request>(.*?)</user_request>", re.DOTALL)
_TASK_FILE = "task.json"
_TASK_FIELDS = ("task", "goal", "instruction")


def detect(path: Path) -> bool:
    """Tell whether the path is a history file, or a folder with one at most two levels down."""
    return detection.some_file(path, "*.json", _has_mark)


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the history file, or every one in the folder, in the order of their keys.

    Raises UserError if there is none.
    """
    return files.read_all(history_files(path), _read, want)


def history_files(path: Path) -> list[files.TrajectorySource]:
    """List the history file, or every one in the folder, in the order of their keys; none is
    decoded. Raises UserError if there is none.
    """
    root = DataFolder(path if path.is_dir() else path.parent)
    try:
        matches = [path] if path.is_file() else [*detection.files(path, "*.json", levels=_LEVELS)]
        histories = [file for file in matches if _is_history(file)]
    except OSError as error:
        raise UserError(f"{path} cannot be listed ({error.strerror}): check its access") from None
    if not histories:
        raise UserError(
            f"{path} holds no {KIND} trajectory: --data {KIND}:PATH needs files that "
            "AgentHistoryList.save_to_file wrote"
        )
    return files.number_attempts(_source(root, file) for file in histories)


def _is_history(file: Path) -> bool:
    """Tell by the name that the package gives, so that a damaged file is named, or by the mark."""
    return file.stem.lower() in _OWN_NAMES or _has_mark(detection.head(file))


def _has_mark(head: bytes) -> bool:
    """Tell whether a file begins as a history does: its names stand before any picture."""
    start = _START.match(head.removeprefix(b"\xef\xbb\xbf"))
    if start is None:
        return False
    output, *others = (name in head[start.end() - 1 :] for name in _ITEM)
    return output or all(others)


def _source(root: DataFolder, file: Path) -> files.TrajectorySource:
    folder = file.parent.resolve()
    own = file.stem.lower() in _OWN_NAMES | _COMMON_NAMES
    task_id = files.name_of(folder) if own else files.readable(file.stem)
    agent = files.name_of(folder.parent if own else folder)
    key = TrajectoryKey(benchmark=KIND, agent=agent or KIND, task_id=task_id or KIND)
    return files.TrajectorySource(key, task_id or KIND, file, root)


def _read(source: files.TrajectorySource) -> Trajectory:
    history = elements(read_object(source.data, source.path).get("history", NULL))
    if len(history) > MAX_STEPS:
        raise files.Damaged(f"it has more than {MAX_STEPS:,} steps")
    warnings: list[str] = []
    items = [
        read_item(raw, number, source.path.parent, source.data, warnings)
        for number, raw in enumerate(history, 1)
    ]
    goal = _goal(source, history, Values(warnings))
    last = items[-1] if items else None
    is_done = last is not None and last.is_done
    return Trajectory(
        key=source.key,
        raw_task_id=source.raw_task_id,
        goal=goal,
        steps=steps_of(items),
        answer=last.answer if last is not None and is_done else None,
        terminated=is_done,
        telemetry=_telemetry(items),
        metadata={
            "results": [[*item.results] for item in items],
            "errors": [[*item.errors] for item in items],
            "self_report": last.self_report if last is not None and is_done else None,
            "warnings": [*warnings],
        },
    )


def _goal(source: files.TrajectorySource, history: list[Raw], values: Values) -> str:
    """Return the task, empty where neither the file beside nor a message tells it."""
    beside = source.path.parent / _TASK_FILE
    if source.data.has_file(beside):
        try:
            goals = read_object(source.data, beside)
        except files.Damaged as error:
            goals = {}
            values.warnings.append(f"{_TASK_FILE} is not read: {error}.")
        texts = (values.text(decoded(goals.get(name, NULL)), name) for name in _TASK_FIELDS)
        if goal := next(filter(None, texts), ""):
            return goal.strip()
    for raw in history:
        message = string(fields(raw).get("state_message", NULL))
        if message and (request := _REQUEST.search(message)):
            return request[1].strip()
    return ""


def _telemetry(items: list[Item]) -> dict[str, float]:
    """Count the steps and errors; sum the seconds and input tokens that were recorded."""
    counted = {"n_steps": float(len(items)), "n_err": float(sum(len(i.failures) for i in items))}
    seconds = [item.seconds for item in items if item.seconds is not None]
    tokens = [item.input_tokens for item in items if item.input_tokens is not None]
    sums = {"elapsed": sum(seconds)} if seconds else {}
    return counted | sums | ({"input_tokens": sum(tokens)} if tokens else {})
