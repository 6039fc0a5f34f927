"""browser-use's history files: ``AgentHistoryList.save_to_file`` writes ``{"history": [item]}``.

The form changed with its releases and no file says which it is, so that every field is taken where
it stands. The task is not in the file: it comes from ``--goals``, from a
``task.json`` beside it, or from the request that recent releases repeat to the model. The task id
is the file's name, or its folder's where that is one of the package's own; the agent is the name of
the folder above. The package's own verdict (``LEAKS``) is never read here.

The items of a browser-use history, one a step, whichever release wrote them.

``state`` was taken when the step began: address and screenshot are what the agent saw before its
action. A result's error belongs to the action just done, so that the agent saw it on the next
step; an item without model output failed before an action, and its error is its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Raw

from trajudge.trajectories.loaders import _files as detection
from trajudge.trajectories.loaders import _files as files
from trajudge.trajectories.loaders._files import (
    NULL,
    Damaged,
    decoded,
    elements,
    fields,
    inline_picture,
    named_picture,
    numbers,
    read_object,
    readable,
    scalar,
    string,
    value,
    whole_string,
)
from trajudge.trajectories.loaders._values import Values
from trajudge.trajectories.model import (
    ImageRef,
    Loaded,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
    Want,
    accept_all,
)
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

# The words before the parts of the agent's reasoning, and the names that releases gave them.
_THOUGHTS = (
    ("Evaluation", ("evaluation_previous_goal", "valuation_previous_goal")),
    ("Memory", ("memory",)),
    ("Next goal", ("next_goal",)),
)

_TextOf = Callable[[dict[str, Raw], str], str | None]


class Item(NamedTuple):
    """One item. ``errors`` are its results', each at the place of its action (None: it had none);
    ``had_output``: the model answered, so that they are errors of the actions done. ``results`` are
    the texts that actions extracted, likewise, without the last, which is the answer."""

    url: str | None
    screenshot: ImageRef | None
    reasoning: str | None
    action: str | None
    had_output: bool
    errors: tuple[str | None, ...]
    results: tuple[str | None, ...]
    is_done: bool
    answer: str | None
    self_report: bool | None
    seconds: float | None
    input_tokens: float | None

    @property
    def failures(self) -> tuple[str, ...]:
        """The errors without the places of actions that had none."""
        return tuple(filter(None, self.errors))


def read_item(raw: Raw, number: int, folder: Path, root: DataFolder, warnings: list[str]) -> Item:
    """Read one item; ``number`` counts from 1. Raises Damaged for what is no object."""
    item = fields(raw)
    if not item:
        raise Damaged(f"item {number} of its history is no object")
    output, state = fields(item.get("model_output", NULL)), fields(item.get("state", NULL))
    values, place = Values(warnings), f"of item {number}"
    listed = elements(item.get("result", NULL))
    results = [fields(result) for result in listed]
    for result, read in zip(listed, results, strict=True):
        if not read and not isinstance(other := decoded(result), dict):
            values.refuse(other, "result", place)
    last = results[-1] if results else {}

    def text(record: dict[str, Raw], name: str) -> str | None:
        return values.text(decoded(record.get(name, NULL)), name, place)

    is_done = values.flag(decoded(last.get("is_done", NULL)), "is_done", place) is True
    shown = [result for result in results if not (is_done and result is last)]
    return Item(
        url=text(state, "url"),
        screenshot=_screenshot(state, number, folder, root, warnings),
        reasoning=_reasoning(output, text),
        action=_action(output.get("action", NULL)),
        had_output=bool(output),
        errors=_texts(results, "error", text),
        results=_texts(shown, "extracted_content", text),
        is_done=is_done,
        answer=text(last, "extracted_content"),
        self_report=values.flag(decoded(last.get("success", NULL)), "success", place),
        **_measured(fields(item.get("metadata", NULL))),
    )


def steps_of(items: Sequence[Item]) -> tuple[Step, ...]:
    """Make a step of each item, with the errors that the agent saw when it began."""
    steps = []
    before: tuple[str, ...] = ()
    for index, item in enumerate(items):
        own = () if item.had_output and index + 1 < len(items) else item.failures
        observation = Observation(
            url=item.url,
            screenshot=item.screenshot,
            page_error="\n".join((*before, *own)) or None,
        )
        steps.append(
            Step(
                index=index,
                observation=observation,
                reasoning=item.reasoning,
                action=item.action,
            )
        )
        before = item.failures if item.had_output else ()
    return tuple(steps)


def _texts(results: Sequence[dict[str, Raw]], name: str, text: _TextOf) -> tuple[str | None, ...]:
    """Return a text for each result up to the last that has one, None for one without."""
    texts = [text(result, name) for result in results]
    while texts and texts[-1] is None:
        texts.pop()
    return tuple(texts)


def _screenshot(
    state: dict[str, Raw], number: int, folder: Path, root: DataFolder, warnings: list[str]
) -> ImageRef | None:
    """Take the picture that stands in the item, else the file that it names."""
    inline = state.get("screenshot", NULL)
    if inline != NULL:
        text = whole_string(inline)
        return inline_picture(text if text is not None else 0, f"of step {number}", warnings)
    path = state.get("screenshot_path", NULL)
    recorded = scalar(path) if path != NULL else None
    return named_picture(recorded, [folder / "screenshots", folder], root, warnings)


def _reasoning(output: dict[str, Raw], text: _TextOf) -> str | None:
    """Join the thoughts, which stand in the output or in its ``current_state``."""
    where = fields(output.get("current_state", NULL)) | output
    lines = [*filter(None, [text(where, "thinking")])]
    for word, names in _THOUGHTS:
        if thought := next(filter(None, (text(where, name) for name in names)), None):
            lines.append(f"{word}: {thought}")
    return "\n".join(lines) or None


def _action(raw: Raw) -> str | None:
    """Write one action a line, as ``name({"parameter": value})``; what is no object as its JSON."""
    lines = []
    for action in elements(raw):
        named = fields(action)
        for name, parameters in named.items():
            arguments = value(parameters)
            text = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
            lines.append(readable(f"{name}({text})"))
        if not named and (other := value(action)):
            lines.append(readable(other if isinstance(other, str) else json.dumps(other)))
    return "\n".join(lines) or None


def _measured(metadata: dict[str, Raw]) -> dict[str, float | None]:
    """Return the step's seconds and input tokens, None where they were not recorded."""
    known = numbers({name: scalar(raw) for name, raw in metadata.items()})
    start, end = known.get("step_start_time"), known.get("step_end_time")
    seconds = end - start if start is not None and end is not None else None
    return {"seconds": seconds, "input_tokens": known.get("input_tokens")}


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
