"""Online-Mind2Web submissions: ``<task_id>/result.json`` and screenshots in ``trajectory/``.

A result with a ``schema_version`` is of version 2. In version 1,
``trajectory/N_full_screenshot.png`` shows the page after action N, counted from 1 (0 is the start
page), so that step i, counted from 0, observes screenshot i, and the last one is on a last step
without an action; a missing number was never recorded: published submissions omit some. The format
has no agent: it is the name of the folder with the task folders. A suffix on the task id
(``<task_id>_110325``) distinguishes repeated submissions; the key has the id without it, and the
attempt counts submissions of one task in the order of their folders' names. There is no official
reward; ``annotations.online_mind2web`` reads the experts' labels.

Schema ``online-mind2web-v2`` has one object per step instead of parallel lists. A step names its
own screenshot, which shows the page before its action, the page's address (of a navigation: its
destination) and the thought behind the action; the last one is ``TASK_COMPLETE -> ANSWER: ...``.
The schema's requirements are checked, because they prevent an action from being paired with another
step's screenshot or thought: a result that violates one is unreadable. Unknown fields give a
warning. Source: ``data/schema_v2`` of the benchmark's repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from trajudge.trajectories.loaders._files import Damaged, decode, name_of, text
from trajudge.trajectories.loaders._run import (
    RunFolders,
    RunReader,
    RunSource,
    Values,
    number_attempts,
    run_loader,
)
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.files import DataFolder

SCHEMA = "online-mind2web-v2"
_STATUS = re.compile(r"\|\s*(SUCCESS|FAILED)\s*\Z")
_END = "TASK_COMPLETE"
_ANSWER = re.compile(r"TASK_COMPLETE\s*->\s*ANSWER:(.*)\Z", re.DOTALL)
_IN_TRANSIT = ("http://", "https://")
_SHOWN = 60
_NotBlank = Annotated[str, StringConstraints(pattern=r"\S")]


class _Schema(BaseModel):
    """Fields of the schema; each description is the fix for a wrong value."""

    model_config = ConfigDict(strict=True, extra="allow")


class _StepV2(_Schema):
    step: int = Field(description="number the steps from 0")
    screenshot: _NotBlank = Field(
        description="name the step's file in trajectory/, such as 0000.png"
    )
    url: str | None = Field(None, description="write the page's address, or null")
    action: _NotBlank = Field(description="write the action's text")
    action_status: Literal["SUCCESS", "FAILED"] | None = Field(
        None, description="write SUCCESS, FAILED or null"
    )
    thought: str | None = Field(description="write the thought, or null for none")

    @property
    def status(self) -> str | None:
        """Whether the action had an effect, by its field or the end of its text."""
        suffix = _STATUS.search(self.action)
        return self.action_status or (suffix[1] if suffix else None)


class _ResultV2(_Schema):
    task: _NotBlank = Field(description="write the task's text")
    task_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")] = Field(
        description="write the benchmark's bare id (letters, digits, _ and -), without tasks/"
    )
    agent_final_answer: str | None = Field(description="write the answer, or null for none")
    reference_length: int = Field(
        ge=1, description="write the person's number of steps, as the benchmark's task has it"
    )
    action_history: list[_StepV2] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        for index, entry in enumerate(self.action_history):
            location, suffix = f"action_history[{index}]", _STATUS.search(entry.action)
            if entry.step != index:
                raise ValueError(
                    f"{location}.step is {entry.step}: number the steps from 0, here {index}"
                )
            if entry.action_status and suffix and suffix[1] != entry.action_status:
                raise ValueError(
                    f"{location}.action_status is {entry.action_status}, but the action ends with "
                    f"{suffix[1]}: make them agree"
                )
        action, answer = self.action_history[-1].action, self.agent_final_answer
        if not action.startswith(_END):
            raise ValueError(
                f"action_history ends with {action[:_SHOWN]!r}: end it with a step "
                "TASK_COMPLETE -> ANSWER: and the answer"
            )
        stated = _ANSWER.match(action)
        if answer is not None and answer.split() != (stated[1].split() if stated else []):
            raise ValueError(
                "agent_final_answer is not the text after TASK_COMPLETE -> ANSWER: in the last "
                "action: make them equal"
            )
        return self


def _checked(result: object) -> _ResultV2:
    """Check a result against the schema. Raises Damaged with the first invalid field, and the
    fix."""
    try:
        return _ResultV2.model_validate(result)
    except ValidationError as refused:
        error = refused.errors()[0]
    if error["type"] == "value_error":
        raise Damaged(error["msg"].removeprefix("Value error, "))
    names = [part for part in error["loc"] if isinstance(part, str)]
    location = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error["loc"])[1:]
    if location == "action_history":
        raise Damaged("action_history is no list of steps: write one object a step")
    if names == ["action_history"]:
        raise Damaged(
            f"{location} is no object: write step, screenshot, action and thought, or leave out "
            "schema_version for a result of version 1"
        )
    kind = _StepV2 if len(names) > 1 else _ResultV2
    shown = "missing" if error["type"] == "missing" else repr(error["input"])[:_SHOWN]
    raise Damaged(f"{location} is {shown}: {kind.model_fields[names[-1]].description}")


def _screenshot(run: RunReader, name: str, index: int) -> ImageRef | None:
    """Return a reference to a file in the folder ``trajectory``; results that were never
    unpacked have the image inline, or a URL, which is not downloaded."""
    if name.startswith("data:"):
        return run.inline_picture(name, f"of step {index}")
    if name.startswith(_IN_TRANSIT):
        run.warnings.append(f"The screenshot of step {index} is an address, which is not fetched.")
        return ImageRef(problem=f"the screenshot of step {index} is an address, not a file")
    return run.named_picture(name, run.path / "trajectory")


def _unknown(record: _Schema, location: str) -> Iterator[str]:
    for name in record.model_extra or ():
        if name != "schema_version":
            yield f"The schema knows no field {location}{name}: it is not read."


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


def _sources(path: Path) -> list[RunSource]:
    root, folders = DataFolder(path), FOLDERS.of(path)
    return number_attempts(_source(root, folder) for folder in folders)


def _source(root: DataFolder, folder: Path) -> RunSource:
    """Return the source with the key of ``result.json``, or of the folder's name if that cannot
    be read."""
    try:
        stated = decode(root, folder / _RESULT, _Id).task_id
        raw = Values().name(stated, "task_id") or name_of(folder)
    except Damaged:
        raw = name_of(folder)
    suffixed = _SUFFIXED.fullmatch(raw)
    agent = name_of(folder.resolve().parent)
    key = TrajectoryKey(benchmark=KIND, agent=agent, task_id=suffixed[1] if suffixed else raw)
    return RunSource(key, raw, folder, root)


def _read(run: RunReader) -> Trajectory:
    version = decode(run.data, run.path / _RESULT, _Version).schema_version
    if not (run.path / "trajectory").is_dir():
        raise Damaged("the folder trajectory/, with the screenshots, is missing")
    if version is not None:
        return _read_v2(run, version)
    result = decode(run.data, run.path / _RESULT, _Result)
    goal = run.text(result.task, "task")
    if goal is None:
        raise Damaged(f"{_RESULT} has no task")
    run.name(result.task_id, "task_id")
    actions, thoughts = result.action_history, result.thoughts
    if len(actions) != len(thoughts):
        run.warnings.append(f"{len(actions)} actions but {len(thoughts)} thoughts.")
    pairs = [*zip_longest(actions, thoughts)]
    images = _screenshots(run, len(pairs))
    if images and max(images) == len(pairs):
        pairs.append((None, None))
    steps = [
        Step(
            index=index,
            observation=Observation(screenshot=images.get(index)),
            action=run.text(action, "action", f"of step {index}"),
            reasoning=run.text(thought, "thought", f"of step {index}"),
        )
        for index, (action, thought) in enumerate(pairs)
    ]
    answer = run.text(result.final_result_response, "final_result_response")
    status = run.text(result.result_status, "result_status")
    return run.trajectory(
        goal,
        steps,
        answer=answer,
        telemetry={"n_steps": float(len(actions))},
        metadata={"result_status": status},
    )


load = run_loader(_sources, _read)


def _read_v2(run: RunReader, version: object) -> Trajectory:
    if version != SCHEMA:
        raise Damaged(
            f"{_RESULT}: schema_version is {version!r}: this trajudge reads {SCHEMA}, and results "
            "of version 1, which have no schema_version"
        )
    content = decode(run.data, run.path / _RESULT, dict[str, Any])
    try:
        result = _checked(content)
    except Damaged as error:
        raise Damaged(f"{_RESULT}: {error}") from None
    run.warnings += _unknown(result, "")
    steps = []
    for index, entry in enumerate(result.action_history):
        run.warnings += _unknown(entry, f"action_history[{index}].")
        shown = _screenshot(run, entry.screenshot, index)
        steps.append(
            Step(
                index=index,
                observation=Observation(url=text(entry.url), screenshot=shown),
                reasoning=text(entry.thought),
                action=text(entry.action),
            )
        )
    failed = sum(entry.status == "FAILED" for entry in result.action_history)
    return run.trajectory(
        text(result.task) or "",
        steps,
        answer=text(result.agent_final_answer),
        terminated=True,
        telemetry={"n_steps": float(len(steps)), "n_err": float(failed)},
    )


def _screenshots(run: RunReader, last: int) -> dict[int, ImageRef | None]:
    """Find the screenshots by number, without those beyond ``last``."""
    files = {
        int(match[1]): path
        for path in (run.path / "trajectory").iterdir()
        if (match := _SCREENSHOT.fullmatch(path.name))
    }
    screenshots: dict[int, ImageRef | None] = {}
    for number, path in sorted(files.items()):
        if number <= last:
            screenshots[number] = run.screenshot(path)
        else:
            run.warnings.append(f"The screenshot {path.name} belongs to no action.")
    missing = [n for n in range(1, max(screenshots, default=0)) if n not in screenshots]
    run.warnings += [f"There is no screenshot of number {number}." for number in missing]
    return screenshots
