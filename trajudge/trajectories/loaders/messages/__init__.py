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
from pathlib import Path
from typing import Any

from trajudge.trajectories.loaders import detection
from trajudge.trajectories.loaders.files import Damaged, readable, reason
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
from trajudge.trajectories.loaders.pictures import inline_picture
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder

KIND = "messages"
# What says whether the run was right: it becomes the reward, and reaches no prompt.
LEAKS = ("reward", "score", "success")

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
        key, values = None, Values([])
        try:
            key = _key(record, attempts, values)
            if want(key):
                yield _trajectory(record, key, values)
        except (ValueError, OSError, RecursionError) as error:
            yield Unreadable(record.place, reason(error), key)


def _records(files: list[Path], root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    for file in files:
        try:
            yield from read_records(file, root)
        except UserError as error:
            yield Unreadable(readable(str(file)), reason(error))


def _key(record: LogRecord, attempts: Counter[TrajectoryKey], values: Values) -> TrajectoryKey:
    fields = record.fields
    names = (
        values.name(fields.get("benchmark"), "benchmark") or KIND,
        _first_of(fields, _AGENTS, values) or record.agent,
        _task_id(fields, values) or record.task_id,
    )
    if max(map(len, names)) > _MAX_ID:
        raise Damaged(f"the name of the task or of its agent has more than {_MAX_ID:,} characters")
    benchmark, agent, task_id = names
    key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
    # Labels name the attempt: one that is counted instead may be another.
    attempt = values.whole(fields.get("attempt"), "attempt")
    if attempt is not None and 0 <= attempt < 10**9:
        return key.model_copy(update={"attempt": attempt})
    if attempt is not None:
        values.warnings.append("The attempt is not read: it is no number from 0.")
    attempts[key] += 1
    return key.model_copy(update={"attempt": attempts[key] - 1})


def _task_id(fields: Mapping[str, Any], values: Values) -> str | None:
    """Return the task's id; that of a response of an API is none."""
    task_id = values.name(fields.get("task_id", fields.get("id")), "task_id")
    return None if task_id is None or task_id.startswith(_RESPONSES) else task_id


def _first_of(fields: Mapping[str, Any], names: tuple[str, ...], values: Values) -> str | None:
    read = (values.name(fields.get(name), name) for name in names)
    return next(filter(None, read), None)


def _trajectory(record: LogRecord, key: TrajectoryKey, values: Values) -> Trajectory:
    fields, warnings = record.fields, values.warnings
    reward = _reward(fields, values)
    entries = find_entries(fields)
    events = read_events(entries, _image_opener(warnings), warnings)
    if not any(isinstance(event, AgentTurn) for event in events):
        met = form_of(entries or listed_entries(fields))
        raise Damaged(f"holds no turn of an agent, but {met}; read are {KNOWN}")
    opening = next(
        (event.texts for event in events if isinstance(event, UserMessage) and event.texts), ()
    )
    goals = (values.text(fields.get(name), name) for name in _GOALS)
    stated = next(filter(None, goals), None)
    goal = stated or "\n".join(opening)
    repeated = (stated,) if stated else (goal, *opening)
    course = course_of(events, repeated, warnings)
    return Trajectory(
        key=key,
        raw_task_id=_task_id(fields, Values([])) or record.task_id,
        goal=goal,
        steps=course.steps,
        answer=course.answer,
        official_reward=reward,
        terminated=course.terminated,
        truncated=course.truncated,
        telemetry=course.telemetry,
        metadata={"warnings": [*dict.fromkeys(warnings)][:_MAX_WARNINGS]},
    )


def _reward(fields: Mapping[str, Any], values: Values) -> float | None:
    """Return the first reward that is stated; others that differ are named."""
    read = {name: values.number(fields.get(name), name) for name in LEAKS}
    stated = {name: reward for name, reward in read.items() if reward is not None}
    if len({*stated.values()}) > 1:
        first, *others = stated
        values.warnings.append(f"The reward is that of {first}; {', '.join(others)} differs.")
    return next(iter(stated.values()), None)


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
