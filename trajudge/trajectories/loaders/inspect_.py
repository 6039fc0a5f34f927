"""Logs of inspect_ai: ``.eval`` archives and ``.json`` logs.

A sample of one epoch is a trajectory. The benchmark is the task without its package, the agent the
model (and the solver, if a folder has several of one task and model), the attempt counts epochs
from 0. If several logs of one task have a sample, as those of a retried evaluation, the newest
counts; another evaluation of the same task by the same model adds attempts. The reward is the value
of the only score. ``target``, ``scores`` and ``metadata`` of a sample reach no prompt.

An ``.eval`` file is a zip archive: ``header.json`` (a running or crashed log has only
``_journal/start.json``) and one member per sample. A ``.json`` log has the same in one object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from trajudge.trajectories.loaders import _files as detection
from trajudge.trajectories.loaders._files import (
    NULL,
    ArchiveLimits,
    Damaged,
    check_structures,
    decode,
    numbers,
    open_archive,
    readable,
    reason,
    text,
)
from trajudge.trajectories.loaders._run import Values
from trajudge.trajectories.loaders.messages import (
    course_of,
    image_opener,
    image_source,
    read_events,
)
from trajudge.trajectories.model import (
    Loaded,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.trajectories.thoughts import split_message
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, UnsafeFile

T = TypeVar("T")
# A log is read member by member: its size as a whole is bounded by that of its file alone. A sample
# of 100 screenshots takes 100 MiB.
LIMITS = ArchiveLimits(members=100_000, member=128 * 2**20, grows=True)
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_JSON_MARK = re.compile(rb'^\s*\{\s*"version"\s*:\s*\d+\s*,(?s:.{0,200})"eval"\s*:\s*\{')


class Sample(msgspec.Struct):
    """One sample of one epoch; ``events`` repeat all of it and are skipped. Large fields are
    decoded on access."""

    id: Any
    epoch: Any = 1
    input: msgspec.Raw = NULL
    choices: msgspec.Raw = NULL
    messages: msgspec.Raw = NULL
    output: msgspec.Raw = NULL
    scores: msgspec.Raw = NULL
    attachments: msgspec.Raw = NULL
    error: Any = None
    limit: Any = None
    model_usage: Any = None
    total_time: Any = None
    working_time: Any = None

    def value(self, name: str) -> Any:
        """Decode a large field. Raises Damaged, ValueError, RecursionError."""
        content = bytes(getattr(self, name))
        check_structures(content)
        return python_json.decode(content, _ANY)


class LogHeader(msgspec.Struct):
    """The header of a log: ``eval`` and the ``plan`` of solvers."""

    eval: dict[str, Any]
    plan: Any = None


class _JsonLog(LogHeader):
    samples: list[msgspec.Raw] | None = None


class EvalLog(NamedTuple):
    """A log's file and header."""

    file: Path
    header: LogHeader

    def field(self, name: str) -> str:
        """Return a text of ``eval``, empty if there is none."""
        value = self.header.eval.get(name)
        return readable(value) if isinstance(value, str) else ""


_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_SAMPLE = msgspec.json.Decoder(Sample)
_HEADER = msgspec.json.Decoder(LogHeader)


def is_log(file: Path, root: DataFolder) -> bool:
    """Return True if the file is a log: an archive with a header, or JSON that begins like one."""
    if file.suffix == ".json":
        return _JSON_MARK.match(detection.head(file)) is not None
    try:
        with open_archive(file, root, LIMITS) as archive:
            return any(name in archive for name in _HEADERS)
    except (Damaged, UnsafeFile, OSError):
        return False


def read_header(file: Path, root: DataFolder) -> EvalLog:
    """Read the header of a log. Raises Damaged."""
    if file.suffix == ".json":
        return EvalLog(file, decode(root, file, LogHeader))
    try:
        with open_archive(file, root, LIMITS) as archive:
            for name in _HEADERS:
                if name in archive:
                    return EvalLog(file, _decoded(archive.read(name), _HEADER, name))
    except UnsafeFile as error:
        raise Damaged(str(error)) from None
    except OSError as error:
        raise Damaged(f"{readable(file.name)} cannot be read: {error.strerror}") from None
    raise Damaged(f"{readable(file.name)} has neither {' nor '.join(_HEADERS)}")


def read_samples(log: EvalLog, root: DataFolder) -> Iterator[Sample | Damaged]:
    """Yield the samples of a log, one in memory at a time; Damaged for an unreadable one."""
    try:
        if log.file.suffix == ".json":
            for number, one in enumerate(decode(root, log.file, _JsonLog).samples or [], 1):
                yield _sample(partial(bytes, one), f"sample {number}")
            return
        with open_archive(log.file, root, LIMITS) as archive:
            for name in archive:
                if name.startswith(_SAMPLES) and name.endswith(".json"):
                    yield _sample(partial(archive.read, name), readable(name))
    except (Damaged, UnsafeFile, OSError) as error:
        yield Damaged(reason(error))


def _sample(read: Callable[[], bytes], location: str) -> Sample | Damaged:
    try:
        return _decoded(read(), _SAMPLE, location)
    except Damaged as error:
        return error


def _decoded(content: bytes, decoder: msgspec.json.Decoder[T], location: str) -> T:
    """Decode JSON. Raises Damaged."""
    try:
        return python_json.decode(content, decoder)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{location} is not the JSON expected: {reason(error)}") from None


_ATTACHMENT = "attachment://"
# Values of texts in inspect's ``value_to_float``: its grades, and words in any case.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MAX_WARNINGS = 50


def make_trajectory(sample: Sample, key: TrajectoryKey, needs: Needs) -> Trajectory:
    """Return the trajectory of a sample. Raises Damaged without a list of messages."""
    values = Values(with_pictures=bool(needs.screenshots) or needs.goal_images)
    warnings = values.warnings
    reward = _reward(sample.value("scores"), values)
    attached = _Attachments(sample.value("attachments"), warnings)
    open_image = image_opener(values)
    messages = attached.resolved(sample.value("messages"))
    if not isinstance(messages, list):
        raise Damaged("has no list of messages")
    question = attached.resolved(sample.value("input"))
    prompts, pictures = _user_texts(question, values), _pictures(question)
    goal = "\n".join([*prompts, *_choices(sample.value("choices"))])
    goal_images = tuple(open_image(source) for source in pictures)
    seen = [_without(message, pictures) for message in messages]
    events = read_events(seen, open_image, warnings)
    course = course_of(
        events, {goal, "\n".join(prompts), *prompts, *_solver_texts(messages)}, warnings
    )
    stopped = sample.limit is not None or sample.error is not None
    answer = None if stopped else _completion(attached.resolved(sample.value("output")), values)
    return Trajectory(
        key=key,
        raw_task_id=key.task_id,
        goal=goal,
        goal_images=goal_images,
        steps=course.steps,
        answer=answer,
        official_reward=reward,
        terminated=answer is not None,
        truncated=sample.limit is not None,
        telemetry=course.telemetry | _spent(sample),
        metadata={
            **_ended(sample),
            "warnings": [*dict.fromkeys(warnings)][:_MAX_WARNINGS],
        },
    )


class _Attachments:
    """The long texts and images of a sample, stored once, by hash."""

    def __init__(self, attachments: object, warnings: list[str]) -> None:
        self._contents = attachments if isinstance(attachments, dict) else {}
        self._warnings = warnings

    def resolved(self, value: Any) -> Any:
        """Replace every reference by its attachment; references inside attachments are kept."""
        if isinstance(value, str):
            return self._content(value)
        if isinstance(value, list):
            return [self.resolved(one) for one in value]
        if isinstance(value, dict):
            return {name: self.resolved(one) for name, one in value.items()}
        return value

    def _content(self, value: str) -> str:
        if not value.startswith(_ATTACHMENT):
            return value
        content = self._contents.get(value.removeprefix(_ATTACHMENT))
        if isinstance(content, str):
            return content
        self._warnings.append(f"The log lacks the attachment {readable(value)[13:53]!r}.")
        return value


def _user_texts(entries: object, values: Values) -> list[str]:
    """Return the user's texts: the input, or those of its messages."""
    if isinstance(entries, str):
        return [readable(entries)]
    texts = _texts(_of_user(entries))
    words = None if texts or _pictures(entries) else values.text(entries or None, "input")
    return [words] if words else texts


def _pictures(entries: object) -> list[str]:
    """Return the images of the input, which belong to the goal."""
    contents = (message.get("content") for message in _of_user(entries))
    parts = (part for content in contents if isinstance(content, list) for part in content)
    return [source for part in parts if (source := _picture(part))]


def _without(message: object, pictures: list[str]) -> object:
    """Return a message without the images of the goal."""
    content = message.get("content") if isinstance(message, dict) else None
    if not pictures or not isinstance(message, dict) or not isinstance(content, list):
        return message
    is_asked = message.get("role") == "user"
    rest = [part for part in content if not (is_asked and _picture(part) in pictures)]
    return {**message, "content": rest}


def _picture(part: object) -> str:
    return image_source(part) if isinstance(part, dict) and part.get("type") == "image" else ""


def _of_user(entries: object) -> list[dict[str, Any]]:
    messages = entries if isinstance(entries, list) else []
    return [one for one in messages if isinstance(one, dict) and one.get("role") == "user"]


def _solver_texts(messages: list[Any]) -> list[str]:
    """Return the texts of the messages that the solver made of the input."""
    return _texts(
        [one for one in messages if isinstance(one, dict) and one.get("source") == "input"]
    )


def _texts(messages: list[dict[str, Any]]) -> list[str]:
    texts = []
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            words = text(part.get("text") if isinstance(part, dict) else part)
            texts += [words] if words else []
    return texts


def _choices(choices: object) -> list[str]:
    listed = choices if isinstance(choices, list) else []
    return [f"{chr(ord('A') + at)}) {readable(str(one))}" for at, one in enumerate(listed[:26])]


def _completion(output: object, values: Values) -> str | None:
    """Return the model's last text without its thoughts; early versions wrote it only among the
    choices."""
    if not isinstance(output, dict):
        return None
    if "completion" in output:
        words = values.text(output["completion"], "completion")
        return text(split_message(words)[1]) if words else None
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    words = "\n".join(_texts([message])) if isinstance(message, dict) else ""
    return text(split_message(words)[1])


def _reward(scores: object, values: Values) -> float | None:
    """Return the value of the only score as a number in [0, 1], as inspect's ``value_to_float``
    reads it; values that it converts to 0 because they are not numbers are None here, with a
    warning."""
    if scores is not None and not isinstance(scores, dict):
        values.refuse(scores, "field scores")
    named = scores if isinstance(scores, dict) else {}
    if len(named) > 1:
        names = ", ".join(readable(str(name)) for name in sorted(named))
        values.warnings.append(f"There are several scores ({names[:200]}): none is the reward.")
    if len(named) != 1:
        return None
    [score] = named.values()
    if not isinstance(score, dict):
        values.refuse(score, "score")
        return None
    value = score.get("value")
    if isinstance(value, str):
        value = _GRADES.get(value, _WORDS.get(value.casefold(), value))
    reward = values.number(value, "score")
    if reward is not None and not 0 <= reward <= 1:
        values.warnings.append("The score is no number from 0 to 1: there is no reward.")
        return None
    return reward


def _spent(sample: Sample) -> dict[str, float]:
    """Return the seconds and the tokens of all models together."""
    usage = sample.model_usage if isinstance(sample.model_usage, dict) else {}
    models = [one for one in usage.values() if isinstance(one, Mapping)]
    tokens = {
        name: sum(numbers(model).get(name, 0.0) for model in models)
        for name in ("input_tokens", "output_tokens")
        if models
    }
    times = {"elapsed": sample.total_time, "working_time": sample.working_time}
    return numbers({**times, **tokens})


def _ended(sample: Sample) -> dict[str, str]:
    """Return why the run ended early: the error's message, the limit's type."""
    reasons: dict[str, str] = {}
    for name, record, field in (
        ("error", sample.error, "message"),
        ("limit", sample.limit, "type"),
    ):
        reason = text(record.get(field)) if isinstance(record, dict) else None
        reasons |= {name: reason[:2000]} if reason else {}
    return reasons


KIND = "inspect"
DETECTION_RANK = 2
# Fields with the right answer: ``scores`` gives the reward, the rest is not read.
LEAKS = ("target", "scores", "metadata", "store", "events")

_SUFFIXES = (".eval", ".json")
_MAX_ID = 1000


class _Evaluation(NamedTuple):
    """The logs of one evaluation (several if it was retried), the newest first, and the attempt
    of its first epoch."""

    logs: Sequence[EvalLog]
    benchmark: str
    agent: str
    first_attempt: int


def detect(path: Path) -> bool:
    """Return True if the file, or one in the folder, is a log."""
    if path.is_file():
        return path.suffix in _SUFFIXES and is_log(path, DataFolder(path.resolve().parent))
    files, root = _files(path)[: detection.MAX_FILES], DataFolder(path)
    return any(is_log(file, root) for file in files)


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield the samples of the log, or of those in the folder, by evaluation.

    Raises UserError without a log.
    """
    if path.is_file():
        files = [path.resolve()]
        root = DataFolder(files[0].parent)
    else:
        root = DataFolder(path)
        files = [one for one in _files(path) if one.suffix == ".eval" or is_log(one, root)]
    if not files:
        raise UserError(f"{path} holds no log: --data {KIND}:PATH needs .eval files")
    return _load(files, root, want, needs)


def _files(path: Path) -> list[Path]:
    return [file for file in detection.files(path, "*.*") if file.suffix in _SUFFIXES]


def _load(files: Sequence[Path], root: DataFolder, want: Want, needs: Needs) -> Loaded:
    logs: list[EvalLog] = []
    for file in files:
        try:
            logs.append(read_header(file, root))
        except Damaged as error:
            yield Unreadable(readable(str(file)), reason(error))
    for evaluation in _evaluations(logs):
        yield from _load_evaluation(evaluation, root, want, needs)


def _load_evaluation(evaluation: _Evaluation, root: DataFolder, want: Want, needs: Needs) -> Loaded:
    seen: set[TrajectoryKey] = set()
    for log in evaluation.logs:
        location = readable(str(log.file))
        for sample in read_samples(log, root):
            if isinstance(sample, Damaged):
                yield Unreadable(location, reason(sample))
                continue
            key = None
            try:
                key = _key(sample, evaluation)
                if key not in seen and want(key):
                    yield make_trajectory(sample, key, needs)
                seen.add(key)
            except (ValueError, RecursionError) as error:
                where = f"{location}: sample {key.task_id}" if key else location
                yield Unreadable(where, reason(error), key)


def _key(sample: Sample, evaluation: _Evaluation) -> TrajectoryKey:
    if isinstance(sample.id, str) and len(sample.id) > _MAX_ID:
        raise Damaged(f"a sample's id has more than {_MAX_ID:,} characters")
    if isinstance(sample.id, bool) or not isinstance(sample.id, int | str):
        raise Damaged(f"a sample's id is neither a number nor a text: {str(sample.id)[:80]!r}")
    epoch = sample.epoch
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise Damaged(f"sample {str(sample.id)[:80]!r}: its epoch is {str(epoch)[:20]!r}")
    return TrajectoryKey(
        benchmark=evaluation.benchmark,
        agent=evaluation.agent,
        task_id=readable(str(sample.id)),
        attempt=evaluation.first_attempt + epoch - 1,
    )


def _evaluations(logs: Sequence[EvalLog]) -> Iterator[_Evaluation]:
    """Group the logs by evaluation, in the order of their start."""
    ordered = sorted(logs, key=_started)
    by_task: dict[str, list[EvalLog]] = {}
    for log in ordered:
        by_task.setdefault(log.field("task_id") or str(log.file), []).append(log)
    solvers = {name: _solver(versions[0]) for name, versions in by_task.items()}
    used: dict[tuple[str, str], int] = {}
    for name, versions in by_task.items():
        log = versions[-1]
        pair = (log.field("task"), log.field("model"))
        rivals = {
            solvers[other]
            for other, (first, *_) in by_task.items()
            if (first.field("task"), first.field("model")) == pair
        }
        agent = pair[1] or "unknown"
        agent += f"+{solvers[name]}" if len(rivals) > 1 else ""
        benchmark = pair[0].rpartition("/")[2] or KIND
        first_attempt = used.get((benchmark, agent), 0)
        used[benchmark, agent] = first_attempt + _epochs(log)
        yield _Evaluation(versions[::-1], benchmark, agent, first_attempt)


def _started(log: EvalLog) -> tuple[float, str]:
    try:
        seconds = datetime.fromisoformat(log.field("created")).timestamp()
    except (ValueError, OverflowError):
        seconds = 0.0
    return seconds, log.file.name


def _epochs(log: EvalLog) -> int:
    config = log.header.eval.get("config")
    epochs = config.get("epochs") if isinstance(config, dict) else None
    return epochs if isinstance(epochs, int) and 1 <= epochs <= 10_000 else 1


def _solver(log: EvalLog) -> str:
    """Return the solver's name, or the names of the plan's steps."""
    if named := log.field("solver"):
        return named
    plan: Any = log.header.plan
    steps = plan.get("steps") if isinstance(plan, dict) else None
    named_steps = [one.get("solver") for one in steps or () if isinstance(one, dict)]
    return "-".join(readable(one) for one in named_steps if isinstance(one, str)) or "solver"
