"""browser-use's history files: ``AgentHistoryList.save_to_file`` writes ``{"history": [item]}``.

The format differs between releases and the file has no version, so that every field is looked up in
all its positions. The task is not in the file: it is read from ``--goals``, from a ``task.json``
next to it, or from the request that recent releases repeat to the model. The task id is the file's
name, or its folder's for the package's own file names; the agent is the name of the folder above.
The package's own verdict (``LEAKS``) is never read here.

An item is a step. ``state`` was recorded at the start of the step: address and screenshot show the
page before the action. A result's error belongs to the preceding action, so that the agent saw it
in the next step; an item without model output failed before an action, and its error is its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trajudge.trajectories.loaders import _files as files
from trajudge.trajectories.loaders._files import (
    Damaged,
    items_of,
    numbers,
    read_object,
    readable,
    record_of,
)
from trajudge.trajectories.loaders._run import RunReader, RunSource, number_attempts, run_loader
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.files import DataFolder

# The words before the parts of the agent's reasoning, and the names that releases gave them.
_THOUGHTS = (
    ("Evaluation", ("evaluation_previous_goal", "valuation_previous_goal")),
    ("Memory", ("memory",)),
    ("Next goal", ("next_goal",)),
)


@dataclass(frozen=True)
class Item:
    """One item. ``errors`` are its results', each at the position of its action (None: no
    error); ``had_output``: the model answered, so that they are errors of executed actions.
    ``results`` are the texts that actions extracted, likewise, without the last, which is the
    answer."""

    url: str | None
    screenshot: ImageRef | None
    reasoning: str | None
    action: str | None
    had_output: bool
    errors: list[str | None]
    results: list[str | None]
    is_done: bool
    answer: str | None
    self_report: bool | None
    measured: dict[str, float]

    @property
    def failures(self) -> list[str]:
        """The errors, without None."""
        return [error for error in self.errors if error]


def _item(run: RunReader, item: object, number: int) -> Item:
    """Read one item; ``number`` counts from 1. Raises Damaged for a value that is not an object."""
    if not isinstance(item, dict) or not item:
        raise Damaged(f"item {number} of its history is no object")
    location = f"of item {number}"
    output, state = record_of(item.get("model_output")), record_of(item.get("state"))
    listed = items_of(item.get("result"))
    results = [record_of(result) for result in listed]
    for result in listed:
        if not isinstance(result, dict):
            run.refuse(result, "result", location)
    last = results[-1] if results else {}

    def text(record: dict[str, Any], name: str) -> str | None:
        return run.text(record.get(name), name, location)

    def texts(records: list[dict[str, Any]], name: str) -> list[str | None]:
        """Read a text of each result up to the last that has one."""
        read = [text(record, name) for record in records]
        while read and read[-1] is None:
            read.pop()
        return read

    is_done = run.flag(last.get("is_done"), "is_done", location) is True
    if (shown := state.get("screenshot")) is not None:
        shot = run.inline_picture(shown, f"of step {number}")
    else:
        folder = run.path.parent
        shot = run.named_picture(state.get("screenshot_path"), folder / "screenshots", folder)
    thoughts = record_of(output.get("current_state")) | output
    reasoning = [*filter(None, [text(thoughts, "thinking")])]
    for word, names in _THOUGHTS:
        if thought := run.first_text(thoughts, names, location):
            reasoning.append(f"{word}: {thought}")
    return Item(
        url=text(state, "url"),
        screenshot=shot,
        reasoning="\n".join(reasoning) or None,
        action=_action(output.get("action")),
        had_output=bool(output),
        errors=texts(results, "error"),
        results=texts(results[:-1] if is_done else results, "extracted_content"),
        is_done=is_done,
        answer=text(last, "extracted_content"),
        self_report=run.flag(last.get("success"), "success", location),
        measured=numbers(record_of(item.get("metadata"))),
    )


def _steps(items: Sequence[Item]) -> list[Step]:
    """Return a step for each item, with the errors that the agent saw at its start."""
    steps, before = [], list[str]()
    for index, item in enumerate(items):
        own = [] if item.had_output and index + 1 < len(items) else item.failures
        observation = Observation(
            url=item.url,
            screenshot=item.screenshot,
            page_error="\n".join([*before, *own]) or None,
        )
        steps.append(
            Step(index=index, observation=observation, reasoning=item.reasoning, action=item.action)
        )
        before = item.failures if item.had_output else []
    return steps


def _action(actions: object) -> str | None:
    """Write one action per line, as ``name({"parameter": value})``; other values as JSON."""
    lines = []
    for action in items_of(actions):
        for name, arguments in record_of(action).items():
            text = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
            lines.append(readable(f"{name}({text})"))
        if not isinstance(action, dict) and action:
            lines.append(readable(action if isinstance(action, str) else json.dumps(action)))
    return "\n".join(lines) or None


KIND = "browser-use"
DETECTION_RANK = 1
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
    """Return True for a history file, or a folder with one at most two levels down."""
    return files.some_file(path, "*.json", _has_mark)


def history_files(path: Path) -> list[RunSource]:
    """List the history file, or every one in the folder, by key, without decoding them. Raises
    UserError without any."""
    root = DataFolder(path if path.is_dir() else path.parent)
    needs = "files that AgentHistoryList.save_to_file wrote"
    histories = files.find_logs(path, KIND, "*.json", _LEVELS, needs, is_one=_is_history)
    return number_attempts(_source(root, file) for file in histories)


def _is_history(file: Path) -> bool:
    """Return True for the package's file name, so that a damaged file is reported, or for the
    mark."""
    return file.stem.lower() in _OWN_NAMES or _has_mark(files.head(file))


def _has_mark(head: bytes) -> bool:
    """Return True if a file begins as a history does: its field names precede any image."""
    start = _START.match(head.removeprefix(b"\xef\xbb\xbf"))
    if start is None:
        return False
    output, *others = (name in head[start.end() - 1 :] for name in _ITEM)
    return output or all(others)


def _source(root: DataFolder, file: Path) -> RunSource:
    folder = file.parent.resolve()
    own = file.stem.lower() in _OWN_NAMES | _COMMON_NAMES
    task_id = files.name_of(folder) if own else readable(file.stem)
    agent = files.name_of(folder.parent if own else folder)
    key = TrajectoryKey(benchmark=KIND, agent=agent or KIND, task_id=task_id or KIND)
    return RunSource(key, task_id or KIND, file, root)


def _read(run: RunReader) -> Trajectory:
    history = items_of(read_object(run.data, run.path).get("history"))
    if len(history) > MAX_STEPS:
        raise Damaged(f"it has more than {MAX_STEPS:,} steps")
    items = [_item(run, item, number) for number, item in enumerate(history, 1)]
    last = items[-1] if items and items[-1].is_done else None
    return run.trajectory(
        _goal(run, history),
        _steps(items),
        answer=last.answer if last else None,
        terminated=last is not None,
        telemetry=_telemetry(items),
        metadata={
            "results": [[*item.results] for item in items],
            "errors": [[*item.errors] for item in items],
            "self_report": last.self_report if last else None,
        },
    )


load = run_loader(history_files, _read)


def _goal(run: RunReader, history: list[Any]) -> str:
    """Return the task, empty if neither the file next to it nor a message has it."""
    goals = run.optional_object(run.path.parent / _TASK_FILE)
    if goal := run.first_text(goals, _TASK_FIELDS):
        return goal.strip()
    for item in history:
        message = record_of(item).get("state_message")
        if isinstance(message, str) and (request := _REQUEST.search(readable(message))):
            return request[1].strip()
    return ""


def _telemetry(items: list[Item]) -> dict[str, float]:
    """Count the steps and errors; sum the recorded seconds and input tokens."""
    counted = {"n_steps": float(len(items)), "n_err": float(sum(len(i.failures) for i in items))}
    times = ((i.measured.get("step_start_time"), i.measured.get("step_end_time")) for i in items)
    seconds = [end - start for start, end in times if start is not None and end is not None]
    tokens = [i.measured["input_tokens"] for i in items if "input_tokens" in i.measured]
    sums = {"elapsed": sum(seconds)} if seconds else {}
    return counted | sums | ({"input_tokens": sum(tokens)} if tokens else {})
