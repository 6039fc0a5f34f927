"""Online-Mind2Web submissions: ``<task_id>/result.json`` and screenshots in ``trajectory/``.

A result with a ``schema_version`` is of version 2. In version 1,
``trajectory/N_full_screenshot.png`` is what the agent saw after its action N, counted from 1 (0 is
the page it started on), so step i, counted from 0, observes screenshot i, and the last one stands
on a last step without an action; a number that no file has was never recorded: published
submissions leave some out. The format names no agent: it is the name of the folder that holds the
task folders. A suffix on the task id (``<task_id>_110325``) tells repeated submissions apart; the
key has the id without it, and the attempt counts submissions of one task in the order of their
folders' names.
There is no official reward; the experts' labels are read by ``annotations.online_mind2web``.

``result.json`` of schema ``online-mind2web-v2``: one object a step instead of parallel lists.

A step names its own screenshot, which shows the page right before its action, the page's address
(of a navigation: its destination) and the thought behind the action; the last one is
``TASK_COMPLETE -> ANSWER: ...``. What the schema requires is checked, for it keeps an action from
being paired with another step's screenshot or thought: a result that breaks a rule is unreadable.
Unknown fields cost a warning. Source: ``data/schema_v2`` of the benchmark's repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from trajudge.trajectories.loaders._files import (
    Damaged,
    RunFolders,
    TrajectorySource,
    decode,
    inline_picture,
    name_of,
    named_picture,
    number_attempts,
    read_all,
    screenshot,
    text,
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
from trajudge.util.files import DataFolder

SCHEMA = "online-mind2web-v2"
_FIELDS = frozenset(
    {
        "schema_version",
        "task",
        "task_id",
        "agent_final_answer",
        "reference_length",
        "action_history",
    }
)
_STEP_FIELDS = frozenset({"step", "screenshot", "url", "action", "action_status", "thought"})
_TASK_ID = re.compile(r"[A-Za-z0-9_-]+")
_STATUS = re.compile(r"\|\s*(SUCCESS|FAILED)\s*\Z")
_STATUSES = (None, "SUCCESS", "FAILED")
_END = "TASK_COMPLETE"
_ANSWER = re.compile(r"TASK_COMPLETE\s*->\s*ANSWER:(.*)\Z", re.DOTALL)
_IN_TRANSIT = ("http://", "https://")
_SHOWN = 60


def read_v2(
    result: Mapping[str, Any], folder: Path, root: DataFolder, warnings: list[str]
) -> tuple[Step, ...]:
    """Return the steps of a result whose screenshots lie in ``folder``.

    Raises Damaged naming the field that breaks the schema, and the mend.
    """
    if problem := next(_problems(result), None):
        raise Damaged(problem)
    warnings.extend(_unknown(result, _FIELDS, ""))
    history: Sequence[Mapping[str, Any]] = result["action_history"]
    steps = []
    for index, entry in enumerate(history):
        warnings.extend(_unknown(entry, _STEP_FIELDS, f"action_history[{index}]."))
        shown = _screenshot(entry["screenshot"], index, folder, root, warnings)
        steps.append(
            Step(
                index=index,
                observation=Observation(url=text(entry.get("url")), screenshot=shown),
                reasoning=text(entry["thought"]),
                action=text(entry["action"]),
            )
        )
    return tuple(steps)


def failed_actions(result: Mapping[str, Any]) -> int:
    """Count the actions that had no effect, as a checked result tells."""
    return sum(_told_status(entry) == "FAILED" for entry in result["action_history"])


def _problems(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what breaks the schema, in the order of the fields, each with its mend."""
    if not text(result.get("task")):
        yield f"task is {_short(result, 'task')}: write the task's text"
    task_id = result.get("task_id")
    if not isinstance(task_id, str) or not _TASK_ID.fullmatch(task_id):
        yield (
            f"task_id is {_short(result, 'task_id')}: write the benchmark's bare id "
            "(letters, digits, _ and -), without tasks/"
        )
    if "agent_final_answer" not in result:
        yield "agent_final_answer is missing: write the answer, or null for none"
    elif not isinstance(result["agent_final_answer"], str | None):
        yield f"agent_final_answer is {_short(result, 'agent_final_answer')}: write a text or null"
    length = result.get("reference_length")
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        yield (
            f"reference_length is {_short(result, 'reference_length')}: write the person's number "
            "of steps, as the benchmark's task has it"
        )
    history = result.get("action_history")
    if not isinstance(history, list) or not history:
        yield "action_history is no list of steps: write one object a step"
        return
    for index, entry in enumerate(history):
        yield from _of_step(entry, index)
    yield from _of_end(history[-1], result)


def _of_step(entry: object, index: int) -> Iterator[str]:
    place = f"action_history[{index}]"
    if not isinstance(entry, dict):
        yield (
            f"{place} is no object: write step, screenshot, action and thought, or leave out "
            "schema_version for a result of version 1"
        )
        return
    step = entry.get("step")
    if step != index or isinstance(step, bool):
        yield f"{place}.step is {_short(entry, 'step')}: number the steps from 0, here {index}"
    if not text(entry.get("screenshot")):
        yield (
            f"{place}.screenshot is {_short(entry, 'screenshot')}: name the step's file in "
            "trajectory/, such as 0000.png"
        )
    if not isinstance(entry.get("url"), str | None):
        yield f"{place}.url is {_short(entry, 'url')}: write the page's address, or null"
    if not text(entry.get("action")):
        yield f"{place}.action is {_short(entry, 'action')}: write the action's text"
    if "thought" not in entry:
        yield f"{place}.thought is missing: write the thought, or null for none"
    elif not isinstance(entry["thought"], str | None):
        yield f"{place}.thought is {_short(entry, 'thought')}: write a text or null"
    yield from _of_status(entry, place)


def _of_status(entry: Mapping[str, Any], place: str) -> Iterator[str]:
    status = entry.get("action_status")
    if status not in _STATUSES:
        shown = _short(entry, "action_status")
        yield f"{place}.action_status is {shown}: write SUCCESS, FAILED or null"
        return
    suffix = _STATUS.search(str(entry.get("action")))
    if status and suffix and suffix[1] != status:
        yield (
            f"{place}.action_status is {status}, but the action ends with {suffix[1]}: "
            "make them agree"
        )


def _of_end(entry: object, result: Mapping[str, Any]) -> Iterator[str]:
    """Check that the last step gives the answer that the result gives."""
    action = str(entry.get("action")) if isinstance(entry, dict) else ""
    if not action.startswith(_END):
        yield (
            f"action_history ends with {action[:_SHOWN]!r}: end it with a step "
            "TASK_COMPLETE -> ANSWER: and the answer"
        )
        return
    answer, stated = result.get("agent_final_answer"), _ANSWER.match(action)
    if isinstance(answer, str) and answer.split() != (stated[1].split() if stated else []):
        yield (
            "agent_final_answer is not the text after TASK_COMPLETE -> ANSWER: in the last action: "
            "make them equal"
        )


def _told_status(entry: Mapping[str, Any]) -> str | None:
    suffix = _STATUS.search(entry["action"])
    return entry.get("action_status") or (suffix[1] if suffix else None)


def _screenshot(
    name: str, index: int, folder: Path, root: DataFolder, warnings: list[str]
) -> ImageRef | None:
    """Refer to a file in ``folder``; results that were never unpacked have the picture inline, or
    an address, which is not fetched."""
    if name.startswith("data:"):
        return inline_picture(name, f"of step {index}", warnings)
    if name.startswith(_IN_TRANSIT):
        warnings.append(f"The screenshot of step {index} is an address, which is not fetched.")
        return ImageRef(problem=f"the screenshot of step {index} is an address, not a file")
    return named_picture(name, [folder], root, warnings)


def _unknown(entry: Mapping[str, Any], known: frozenset[str], place: str) -> Iterator[str]:
    for name in entry:
        if name not in known:
            yield f"The schema knows no field {place}{name}: it is not read."


def _short(entry: Mapping[str, Any], name: str) -> str:
    return repr(entry[name])[:_SHOWN] if name in entry else "missing"


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
