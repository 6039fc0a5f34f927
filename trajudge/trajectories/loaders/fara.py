"""Task folders of webeval, Fara's evaluation: ``web_surfer.log``, ``*_final_answer.json``,
screenshots, ``times.json`` and, after a verifier has seen the run, ``task_data.json``.

The goal stands in ``task_data.json`` alone; all else there and in ``scores/`` is the verifier's
(``LEAKS``) and never read here: ``annotations.fara`` makes verdicts of it. The agent is the name of
the folder that holds the task folders.

``web_surfer.log`` has one JSON object a line, some of them actions; CUAVerifierBench holds the same
log as a text. The answer file lists the screenshots; they go by the number in their names. One a
step means that each was taken before its action; one more, that the last is the final page. Fara
writes T + 1 of them from 0, the solver with GPT writes T of them from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders._files import (
    Damaged,
    TrajectorySource,
    decode,
    name_of,
    numbers,
    plain_name,
    read_all,
    readable,
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
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder
from trajudge.util.jsonl import read_lines

TERMINATE = "terminate"
_STOPPING = frozenset({"stop_execution", "stop_and_answer_question", TERMINATE})
_REASONS = ("thoughts", "state_description", "reasoning")
_JSON = msgspec.json.Decoder(dict[str, Any])
_TOLD = re.compile(
    r"\A\s*Thought #\d+:(?P<thought>.*?)\nAction #\d+: executing tool '(?P<tool>[^'\n]*)' "
    r"with arguments (?P<arguments>\{.*)\Z",
    re.DOTALL,
)
_TELLS_ACTION = re.compile(r"^Action #\d+: executing tool", re.MULTILINE)
_SHOWN = 60


class Turn(NamedTuple):
    """One action of the agent's: the page's address before it, what it thought, its text."""

    url: str | None
    reasoning: str | None
    action: str
    name: str

    @property
    def is_last(self) -> bool:
        """Whether the action ends the run."""
        return self.name == TERMINATE


def read_turns(lines: Iterable[bytes], warnings: list[str]) -> list[Turn]:
    """Read the actions of a log in their order; lines that are no JSON object go to ``warnings``.

    Events with an action count. A log without such an event tells its actions in messages.
    """
    values = Values(warnings)
    events = [*_events(lines, warnings)]
    acting = [event for event in events if event.get("action") is not None]
    if acting:
        return [
            _turn(event.get("url"), event["action"], event.get("arguments"), values)
            for event in acting
        ]
    return [turn for event in events for turn in _told(event.get("message"), values)]


def _events(lines: Iterable[bytes], warnings: list[str]) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield python_json.decode(line, _JSON)
        except (ValueError, RecursionError):
            warnings.append(f"Line {number} of the log is no JSON object.")


def _told(message: object, values: Values) -> Iterable[Turn]:
    """Parse a message ``Thought #N: ... Action #N: executing tool 'X' with arguments {...}``."""
    if not isinstance(message, str) or not _TELLS_ACTION.search(message):
        return
    match = _TOLD.match(message)
    arguments = _decoded(match["arguments"]) if match else None
    if match is None or arguments is None:
        values.warnings.append(
            f"A message tells an action that cannot be read: {message[:_SHOWN]!r}."
        )
        return
    yield _turn(None, match["tool"], {"thoughts": match["thought"].strip(), **arguments}, values)


def _decoded(content: str) -> dict[str, Any] | None:
    """Decode a JSON object, None if the text is none."""
    try:
        return python_json.decode(content.encode("utf-8", "replace"), _JSON)
    except (ValueError, RecursionError):
        return None


def _turn(url: object, action: object, arguments: object, values: Values) -> Turn:
    """Make a turn of an event. Arguments that are JSON text are decoded, others are kept."""
    decoded = _decoded(arguments) if isinstance(arguments, str) else arguments
    page = values.text(url, "url", "of an event")
    if not isinstance(decoded, dict) and arguments is not None:
        return Turn(page, None, text(f"{action}({arguments!r})") or "", str(action))
    fields: Mapping[str, Any] = decoded if isinstance(decoded, dict) else {}
    named = fields.get("action")
    name = named if isinstance(named, str) and named else str(action)
    name = TERMINATE if name in _STOPPING else name
    others = ", ".join(
        f"{key}={value!r}" for key, value in fields.items() if key not in ("action", *_REASONS)
    )
    return Turn(page, _reasoning(fields, values), text(f"{name}({others})") or "", name)


def _reasoning(fields: Mapping[str, Any], values: Values) -> str | None:
    """Return the thoughts, else what the agent saw and why it acts, a line each."""
    thoughts, *others = (values.text(fields.get(name), name) for name in _REASONS)
    return thoughts or "\n".join(filter(None, others)) or None


_NUMBER = re.compile(r"(\d{1,9})\D*\Z")
_FRAME = re.compile(r"screenshot_?\d{1,9}\.png")


def frames_of(
    source: TrajectorySource, listed: Sequence[object] | None, warnings: list[str]
) -> list[ImageRef | None]:
    """Return the run's screenshots in the order of their numbers.

    A listed path is the recorder's: its last part is looked for in the run's folder, the rest
    of it is not followed. Without a list, the screenshots in the folder count.
    """
    if listed is None:
        names = [path.name for path in source.path.iterdir() if _FRAME.fullmatch(path.name)]
    else:
        names = [*_names(listed, warnings)]
    return [
        screenshot(source.path / name, source.data, warnings, is_needed=source.with_screenshots)
        for name in sorted(names, key=order_of)
    ]


def order_of(name: str) -> tuple[int, str]:
    """Sort by the last number in a name, ``screenshot10.png`` after ``screenshot9.png``."""
    match = _NUMBER.search(name)
    return (int(match[1]) if match else 0, name)


def _names(listed: Sequence[object], warnings: list[str]) -> Sequence[str]:
    names = []
    for each in listed:
        if name := plain_name(each):
            names.append(name)
        else:
            warnings.append(f"The screenshot {readable(str(each))[:80]!r} has no usable name.")
    return names


def steps_of(
    turns: Sequence[Turn], frames: Sequence[ImageRef | None], warnings: list[str]
) -> tuple[Step, ...]:
    """Put each turn beside the screenshot it saw; one that is left over is the final page's, on a
    last step without action."""
    if frames and len(frames) not in (len(turns), len(turns) + 1):
        warnings.append(f"{len(turns)} actions but {len(frames)} screenshots.")
    steps = [
        Step(
            index=index,
            observation=Observation(
                url=turn.url, screenshot=frames[index] if index < len(frames) else None
            ),
            reasoning=turn.reasoning,
            action=turn.action,
        )
        for index, turn in enumerate(turns)
    ]
    if len(frames) > len(turns):
        shown = Observation(screenshot=frames[len(turns)])
        steps.append(Step(index=len(turns), observation=shown))
    return tuple(steps)


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


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield the runs of the task folders at the path, in the order of their keys.

    Raises UserError if there is none.
    """
    return read_all(task_folders(path), _read, want, needs)


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
    frames = frames_of(source, answer.screenshots, warnings)
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
