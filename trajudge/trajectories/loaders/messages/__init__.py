"""Message logs: conversations of the Anthropic, OpenAI Responses and OpenAI chat APIs.

A JSON file is one conversation, a JSON Lines file one a line (or one message a line); a JSON list
of records that hold a conversation each is as many. The conversation is the value itself, or stands
under ``messages``, ``conversation``, ``trajectory``, ``input`` or ``output``. Beside it may stand
the task's id, goal, reward and attempt and the agent; a missing agent is the name of the folder, a
missing task id that of the file. Pictures that stand in the record are read, those elsewhere (a
URL, the id of a file) are not fetched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trajudge.trajectories.loaders.common import detection
from trajudge.trajectories.loaders.common.pictures import inline_picture
from trajudge.trajectories.loaders.files import Damaged, numbers, readable, reason, text
from trajudge.trajectories.loaders.messages.dialects import KNOWN, form_of
from trajudge.trajectories.loaders.messages.reading import (
    AgentTurn,
    ImageOpener,
    UserMessage,
    read_events,
)
from trajudge.trajectories.loaders.messages.records import (
    LogRecord,
    find_entries,
    listed_entries,
    log_files,
    looks_like_log,
    read_records,
)
from trajudge.trajectories.loaders.messages.stepping import course_of
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder

KIND = "messages"
# What says whether the run was right: it becomes the reward, and reaches no prompt.
LEAKS = ("reward", "score", "success")
_TRUTH = {"true": "1", "false": "0"}

_GOALS = ("goal", "task", "instruction")
_AGENTS = ("agent", "model")
_RESPONSES = ("resp_", "msg_", "chatcmpl-")
_MAX_WARNINGS = 50
_MAX_ID = 1000


def detect(path: Path) -> bool:
    """Tell whether the file, or one in the folder or in those inside, is a message log."""
    if path.is_file():
        return looks_like_log(path)
    return any(map(looks_like_log, log_files(path)[: detection.MAX_FILES]))


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the conversations of the file, or of the files in the folder and in those inside it.

    Runs of the same agent on the same task that have no ``attempt`` are counted in the order read.
    Raises UserError if there is no JSON file.
    """
    files = log_files(path)
    if not files:
        raise UserError(f"{path} holds no message log: --data {KIND}:PATH needs .json or .jsonl")
    return _load(files, DataFolder(files[0].parent if path.is_file() else path), want)


def _load(files: list[Path], root: DataFolder, want: Want) -> Loaded:
    attempts: Counter[TrajectoryKey] = Counter()
    for record in _records(files, root):
        if isinstance(record, Unreadable):
            yield record
            continue
        key = None
        try:
            key = _key(record, attempts)
            if want(key):
                yield _trajectory(record, key)
        except (ValueError, OSError, RecursionError) as error:
            yield Unreadable(record.place, reason(error), key)


def _records(files: list[Path], root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    for file in files:
        try:
            yield from read_records(file, root)
        except UserError as error:
            yield Unreadable(readable(str(file)), reason(error))


def _key(record: LogRecord, attempts: Counter[TrajectoryKey]) -> TrajectoryKey:
    fields = record.fields
    names = (
        text(fields.get("benchmark")) or KIND,
        _first_text(fields, _AGENTS) or record.agent,
        _task_id(fields) or record.task_id,
    )
    if max(map(len, names)) > _MAX_ID:
        raise Damaged(f"the name of the task or of its agent has more than {_MAX_ID:,} characters")
    benchmark, agent, task_id = names
    key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
    if (attempt := _attempt(fields.get("attempt"))) is not None:
        return key.model_copy(update={"attempt": attempt})
    attempts[key] += 1
    return key.model_copy(update={"attempt": attempts[key] - 1})


def _attempt(stated: object) -> int | None:
    """Return a number from 0, also one that is written as text: labels name the attempt, and one
    that is counted instead may be another."""
    if isinstance(stated, str) and stated.isascii() and stated.isdigit() and len(stated) < 10:
        return int(stated)
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 0:
        return None
    return stated


def _task_id(fields: Mapping[str, Any]) -> str | None:
    """Return the task's id; that of a response of an API is none."""
    stated = fields.get("task_id", fields.get("id"))
    if isinstance(stated, int) and not isinstance(stated, bool):
        return str(stated)
    task_id = text(stated)
    return None if task_id is None or task_id.startswith(_RESPONSES) else task_id


def _first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((known for name in names if (known := text(fields.get(name)))), None)


def _trajectory(record: LogRecord, key: TrajectoryKey) -> Trajectory:
    fields, warnings = record.fields, list[str]()
    entries = find_entries(fields)
    events = read_events(entries, _image_opener(warnings), warnings)
    if not any(isinstance(event, AgentTurn) for event in events):
        met = form_of(entries or listed_entries(fields))
        raise Damaged(f"holds no turn of an agent, but {met}; read are {KNOWN}")
    opening = next(
        (event.texts for event in events if isinstance(event, UserMessage) and event.texts), ()
    )
    stated = _first_text(fields, _GOALS)
    goal = stated or "\n".join(opening)
    repeated = (stated,) if stated else (goal, *opening)
    course = course_of(events, repeated, warnings)
    return Trajectory(
        key=key,
        raw_task_id=_task_id(fields) or record.task_id,
        goal=goal,
        steps=course.steps,
        answer=course.answer,
        official_reward=_reward(fields),
        terminated=course.terminated,
        truncated=course.truncated,
        telemetry=course.telemetry,
        metadata={"warnings": [*dict.fromkeys(warnings)][:_MAX_WARNINGS]},
    )


def _reward(fields: Mapping[str, Any]) -> float | None:
    stated = {name: _as_number(fields.get(name)) for name in LEAKS}
    return next(iter(numbers(stated).values()), None)


def _as_number(value: object) -> object:
    """Return a truth value as 1 or 0, and a number that is written as text; all else as it is."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(_TRUTH.get(value.strip().casefold(), value))
    return float(value) if isinstance(value, bool) else value


def _image_opener(warnings: list[str]) -> ImageOpener:
    """Open the pictures of one conversation, which are counted from 1."""
    count = 0

    def open_image(source: str) -> ImageRef:
        nonlocal count
        count += 1
        if source.lower().startswith("data:"):
            ref = inline_picture(source, f"number {count}", warnings)
        else:
            where = "a URL" if "://" in source[:20] else "a file's id" if source else "nothing"
            problem = f"number {count} is given as {where}, which is not fetched"
            warnings.append(f"The picture {problem}.")
            ref = ImageRef(problem=f"the picture {problem}")
        return ref or ImageRef(problem=f"the picture number {count} is empty")

    return open_image
