"""Task folders of webeval, Fara's evaluation: ``web_surfer.log``, ``*_final_answer.json``,
screenshots, ``times.json`` and, after a verifier scored the run, ``task_data.json``.

Only ``task_data.json`` has the goal; the rest of it and ``scores/`` belong to the verifier
(``LEAKS``) and are never read here: ``annotations.fara`` reads them. The agent is the name of the
folder with the task folders.

``web_surfer.log`` has one JSON object per line, some of them actions; CUAVerifierBench has the same
log as a text. The answer file lists the screenshots, which are sorted by the number in their names.
With one per step each shows the page before its action; with one more, the last shows the final
page. Fara writes T + 1 of them from 0, the solver with GPT writes T of them from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders._files import (
    Damaged,
    decode,
    list_runs,
    name_of,
    numbers,
    readable,
    text,
)
from trajudge.trajectories.loaders._run import (
    RunReader,
    RunSource,
    Values,
    by_key,
    plain_name,
    run_loader,
)
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
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
    """One action of the agent: the page's address before it, the thoughts, the action's text."""

    url: str | None
    reasoning: str | None
    action: str
    name: str

    @property
    def is_last(self) -> bool:
        """Whether the action ends the run."""
        return self.name == TERMINATE


def read_turns(lines: Iterable[bytes], values: Values) -> list[Turn]:
    """Read the actions of a log in order; lines that are not JSON objects give a warning.

    Events with an action count. A log without such events has the actions in messages.
    """
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            events += [python_json.decode(line, _JSON)] if line.strip() else []
        except (ValueError, RecursionError):
            values.warnings.append(f"Line {number} of the log is no JSON object.")
    acting = [event for event in events if event.get("action") is not None]
    if acting:
        return [
            _turn(event.get("url"), event["action"], event.get("arguments"), values)
            for event in acting
        ]
    return [turn for event in events for turn in _parse_message(event.get("message"), values)]


def _parse_message(message: object, values: Values) -> Iterable[Turn]:
    """Parse a message ``Thought #N: ... Action #N: executing tool 'X' with arguments {...}``."""
    if not isinstance(message, str) or not _TELLS_ACTION.search(message):
        return
    match = _TOLD.match(message)
    arguments = _decoded(match["arguments"]) if match else None
    if match is None or arguments is None:
        values.warnings.append(
            f"A message has an action that cannot be read: {message[:_SHOWN]!r}."
        )
        return
    yield _turn(None, match["tool"], {"thoughts": match["thought"].strip(), **arguments}, values)


def _decoded(content: str) -> dict[str, Any] | None:
    """Decode a JSON object, None for other text."""
    try:
        return python_json.decode(content.encode("utf-8", "replace"), _JSON)
    except (ValueError, RecursionError):
        return None


def _turn(url: object, action: object, arguments: object, values: Values) -> Turn:
    """Return the turn of an event. Arguments that are JSON text are decoded, others are kept."""
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
    """Return the thoughts, else the agent's description of the page and of its action, a line
    each."""
    thoughts, *others = (values.text(fields.get(name), name) for name in _REASONS)
    return thoughts or "\n".join(filter(None, others)) or None


_NUMBER = re.compile(r"(\d{1,9})\D*\Z")
_FRAME = re.compile(r"screenshot_?\d{1,9}\.png")


def _frames(run: RunReader, listed: Sequence[object] | None) -> list[ImageRef | None]:
    """Return the run's screenshots in the order of their numbers.

    A listed path is the recorder's: its last component is looked up in the run's folder. Without a
    list, the screenshots in the folder count.
    """
    if listed is None:
        names = [path.name for path in run.path.iterdir() if _FRAME.fullmatch(path.name)]
    else:
        names = [name for each in listed if (name := plain_name(each))]
        unusable = (readable(str(each))[:80] for each in listed if not plain_name(each))
        run.warnings += [f"The screenshot {shown!r} has no usable name." for shown in unusable]
    return [run.screenshot(run.path / name) for name in sorted(names, key=order_of)]


def order_of(name: str) -> tuple[int, str]:
    """Sort by the last number in a name, ``screenshot10.png`` after ``screenshot9.png``."""
    match = _NUMBER.search(name)
    return (int(match[1]) if match else 0, name)


def steps_of(
    turns: Sequence[Turn], frames: Sequence[ImageRef | None], warnings: list[str]
) -> tuple[Step, ...]:
    """Pair each turn with its screenshot; an additional one is the final page, on a last step
    without action."""
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
_GOALS = ("task_proposal", "task_summary")
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


def task_folders(path: Path) -> list[RunSource]:
    """List the task folders at the path by key: itself, or those at most two levels down.

    Raises UserError without any.
    """
    if not path.is_dir():
        raise UserError(f"{path} is no folder: --data {KIND}:PATH needs folders with {LOG}")
    needed = f"folders with {LOG} and *_final{_ANSWER}"
    root, folders = DataFolder(path), list_runs(path, KIND, needed, _folders(path, _LEVELS))
    return by_key(_source(root, folder) for folder in folders)


def _folders(path: Path, levels: int) -> Iterator[Path]:
    if (path / LOG).is_file() and any(path.glob(f"*{_ANSWER}")):
        yield path
    elif levels:
        for child in sorted(path.iterdir()):
            if child.is_dir():
                yield from _folders(child, levels - 1)


def _source(root: DataFolder, folder: Path) -> RunSource:
    name = name_of(folder)
    agent = name_of(folder.resolve().parent) or _DEFAULT_AGENT
    return RunSource(TrajectoryKey(benchmark=KIND, agent=agent, task_id=name), name, folder, root)


def _read(run: RunReader) -> Trajectory:
    answers = sorted(run.path.glob(f"*{_ANSWER}"))
    if len(answers) != 1:
        raise Damaged(f"holds {len(answers)} files *{_ANSWER}, where exactly one is expected")
    answer = decode(run.data, answers[0], _Answer)
    # No verifier has written it yet: ``--goals`` then gives it.
    goal = run.first_text(run.optional_object(run.path / _TASK), _GOALS) or ""
    aborted = run.flag(answer.is_aborted, "is_aborted") or False
    times = run.optional_object(run.path / _TIMES)
    duration = run.number(times.get("duration"), "duration")
    turns = read_turns(_lines(run), run)
    frames = _frames(run, answer.screenshots)
    seconds = {} if duration is None else {"cum_agent_elapsed": duration}
    return run.trajectory(
        goal,
        steps_of(turns, frames, run.warnings),
        answer=answer_of(answer.final_answer, run),
        **ending(turns, aborted=aborted),
        telemetry={"n_steps": float(len(turns)), **seconds, **_tokens(answer)},
    )


load = run_loader(task_folders, _read)


def answer_of(value: object, values: Values) -> str | None:
    """Return the agent's answer, None without one."""
    answer = values.text(value, "final_answer")
    return None if answer == NO_ANSWER else answer


def ending(turns: list[Turn], *, aborted: bool) -> dict[str, Any]:
    """Return the end of the run as a trajectory's fields: a run over its budget is
    ``truncated``, an aborted one has ``metadata["aborted"]``."""
    terminated = bool(turns) and turns[-1].is_last
    return {
        "terminated": terminated,
        "truncated": not terminated and not aborted,
        "metadata": {"aborted": aborted},
    }


def _lines(run: RunReader) -> Iterator[bytes]:
    try:
        for line in read_lines(run.path / LOG, folder=run.data):
            if line.problem:
                run.warnings.append(f"Line {line.number} of the log: {line.problem}.")
            else:
                yield line.data
    except UserError as error:
        raise Damaged(str(error)) from None


def _tokens(answer: _Answer) -> dict[str, float]:
    """Add up the tokens of the agent's components."""
    usage = answer.token_usage if isinstance(answer.token_usage, dict) else {}
    parts = [part for part in usage.values() if isinstance(part, dict)]
    return {
        name: sum(numbers({name: part.get(kind)}).get(name, 0.0) for part in parts)
        for name, kind in (
            ("cum_input_tokens", "prompt_tokens"),
            ("cum_output_tokens", "completion_tokens"),
        )
        if any(kind in part for part in parts)
    }
