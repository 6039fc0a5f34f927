"""OSWorld-style logs: a folder per example, with ``traj.jsonl``, images and ``result.txt``.

``<root>/<action space>/<observation>/<model>/<domain>/<example>/``, of which derived projects omit
levels. A line is one action and names the image taken *after* it: step i has the image of the line
before, step 0 the initial state if it was kept, and a last step without action the last image.
``screenshot_file_before_exec`` needs no such shift. The goal is in the lines or in
``evaluation_examples`` next to the root, whose evaluator is never read; the reward in
``result.txt``.

Actions are code (``pyautogui.click(1, 2)``), one word (``DONE``), or an object: ``action_type`` and
parameters (``computer_13``), or ``name`` and ``input`` (tool calls). Responses are a text, an
object with ``raw_response``, or a list of blocks. The writer appends to the file, so that a
repeated task follows its earlier run: the last one counts. A model with several actions per
response has a line for each, all with its step number and response.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from trajudge.trajectories.loaders import _files as files
from trajudge.trajectories.loaders._files import (
    Damaged,
    check_structures,
    items_of,
    parse_object,
    read_object,
    readable,
    record_of,
)
from trajudge.trajectories.loaders._run import (
    RunReader,
    RunSource,
    Values,
    number_attempts,
    run_loader,
)
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, NotUtf8, UnsafeFile, text_of
from trajudge.util.jsonl import read_lines

KIND = "osworld"
DETECTION_RANK = 1
LEAKS = (
    *("result.txt", "results.json", "runtime.log", "traj.jsonl:[*].reward", "traj.jsonl:[*].info"),
    "evaluation_examples/**/*.json:evaluator",
)
LOG = "traj.jsonl"
_LEVELS = 8
_MARKS = (
    (b'"step_num"', b'"action"'),
    (b"'step_num'", b"'action'"),
    (b'"instruction"', b'"initial_state"'),
    (b'"Error"',),
)
# Levels of the layout that name no agent.
_SETTINGS = {
    *("screenshot", "a11y_tree", "screenshot_a11y_tree", "som"),
    *("pyautogui", "computer_13", "claude_computer_use", "autoglm_computer_use"),
}
_DOMAINS = {
    *("chrome", "gimp", "libreoffice_calc", "libreoffice_impress", "libreoffice_writer"),
    *("multi_apps", "os", "thunderbird", "vlc", "vs_code"),
}
_EXAMPLES = Path("evaluation_examples", "examples")
_MAX_EXAMPLE_BYTES, _MAX_RESULT_BYTES = 2**20, 2**10
_FORMS = ("%Y%m%d@%H%M%S%f", "%Y%m%d@%H%M%S")

MAX_TEXT = 100_000
_ENDINGS = {"DONE", "FAIL"}
_ANSWERING = {"answer", "terminate"}
_ANSWER_NAMES = ("text", "answer", "result", "content", "message")
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_BLOCK_TEXTS = ("thinking", "thought", "reasoning", "text", "content")
_RAW_TEXTS = ("raw_response", "response")
_BLOCK_LEVELS = 3
MAX_STEPS = 10_000
_MAX_REPR_BYTES = 2**20
_BEFORE, _AFTER = "screenshot_file_before_exec", "screenshot_file"
_INITIAL = "initial_state"
# What writers call the line of the state before the first action, which has the number 0; other
# lines of that number are actions of writers that count from 0.
_NO_ACTION = {"", "init", "initial", "initialize", "initial_state", "none", "reset", "start"}


class OsworldAction(NamedTuple):
    """``text`` is the action in a step, ``name`` of an object, call or single word. ``answer``
    is the argument of an answering tool."""

    text: str
    name: str
    answer: str | None

    @property
    def ends(self) -> bool:
        """Whether the agent ended its run by it."""
        return self.name in _ENDINGS or self.name.lower() in _ANSWERING


def read_action(recorded: object) -> OsworldAction | None:
    """Read one action; None for null and blanks."""
    if isinstance(recorded, dict):
        return _of_object(recorded)
    if isinstance(recorded, list):
        return OsworldAction(readable(json.dumps(recorded, ensure_ascii=False)), "", None)
    if recorded is None or not str(recorded).strip():
        return None
    text = readable(str(recorded))
    call = _CALL.fullmatch(text)
    name = call[1] if call else text.strip()
    answers = call is not None and name.lower() in _ANSWERING
    return OsworldAction(text, name, _call_answer(text, call[2]) if call and answers else None)


def _of_object(action: dict[str, Any]) -> OsworldAction:
    name, parameters = action.get("name"), action.get("input")
    if not isinstance(name, str) or not isinstance(parameters, dict):
        name = action.get("action_type")
        others = {key: setting for key, setting in action.items() if key != "action_type"}
        inner = others.get("parameters")
        parameters = inner if isinstance(inner, dict) and len(others) == 1 else others
    if not isinstance(name, str):
        return OsworldAction(readable(json.dumps(action, ensure_ascii=False)), "", None)
    texts = (parameters.get(key) for key in _ANSWER_NAMES)
    answer = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    return OsworldAction(
        readable(f"{name}({json.dumps(parameters, ensure_ascii=False)})" if parameters else name),
        readable(name),
        readable(answer) if answer and name.lower() in _ANSWERING else None,
    )


def _call_answer(text: str, inside: str) -> str | None:
    """Return the text that a call ``answer("...")`` or ``terminate(answer="...")`` gives."""
    try:
        call = ast.parse(text.strip(), mode="eval").body if len(text) <= MAX_TEXT else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call):
        return inside.strip() or None
    named = {word.arg: word.value for word in call.keywords}
    values = [*call.args[:1], *(named[name] for name in _ANSWER_NAMES if name in named)]
    texts = (value.value for value in values if isinstance(value, ast.Constant))
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _response(recorded: object, warnings: list[str], location: str) -> str | None:
    """Return the model's response, without texts of more than 100,000 characters, such as
    repeated images; ``location`` names the line in warnings."""
    texts = []
    for text in _texts(recorded):
        if len(text) > MAX_TEXT:
            warnings.append(f"A text of {len(text):,} characters {location} is left out.")
        elif text.strip():
            texts.append(readable(text.strip()))
    known = {"type", "usage", *_BLOCK_TEXTS, *_RAW_TEXTS}
    parts = items_of(recorded)
    if not texts and any(
        not isinstance(part, str) and not record_of(part).keys() & known for part in parts
    ):
        warnings.append(f"The response {location} is not read: it is in no form that is known.")
    return "\n".join(texts) or None


def _texts(recorded: object, levels: int = _BLOCK_LEVELS) -> Iterator[str]:
    """Yield the texts of a response: its own, or those of its blocks in order."""
    if isinstance(recorded, str):
        yield recorded
        return
    for block in items_of(recorded) if levels else ():
        within = record_of(block)
        names = _BLOCK_TEXTS if within.keys() & set(_BLOCK_TEXTS) else _RAW_TEXTS
        for inner in [within[name] for name in names if name in within] if within else [block]:
            yield from _texts(inner, levels - 1)


def _input_tokens(response: object) -> float:
    """Return the prompt's tokens in a response's ``usage``, 0 without it."""
    usage = record_of(record_of(response).get("usage"))
    counts = files.numbers({name: usage.get(name) for name in ("input_tokens", "prompt_tokens")})
    return next((count for count in counts.values() if 0 <= count < 1e12), 0.0)


@dataclass(frozen=True)
class ActionLine:
    """One action; ``stem`` is the beginning of the names of its files (``step_2_20260622@...``),
    if the line has a time. ``before`` and ``after`` are recorded names of images."""

    number: int
    action: OsworldAction | None
    reasoning: str | None
    before: str | None
    after: str | None
    stem: str | None
    timestamp: str | None
    done: bool
    input_tokens: float


@dataclass
class LoggedRun:
    """The last run of a file: its lines, the image before the first, and the error at its end."""

    lines: list[ActionLine] = field(default_factory=list)
    instruction: str | None = None
    initial: str | None = None
    error: str | None = None
    mode: str | None = None
    response: Any = None
    _number: int = -1

    def is_over(self, number: int, response: object) -> bool:
        """Return True if a line with this step number belongs to a later run: the number
        decreases, or the first one is repeated with another response or after an error."""
        if number < self._number or (self.error is not None and number <= 1):
            return True
        is_first = bool(self.lines) and number == self._number == self.lines[0].number <= 1
        return is_first and response != self.response

    def add(self, record: dict[str, Any], number: int, values: Values) -> None:
        """Add the action of a line."""
        response, location = record.get("response"), f"of step {number}"
        again = bool(self.lines) and number == self._number and response == self.response
        reasoning = None if again else _response(response, values.warnings, location)
        words = record.get("natural_language_action")
        moment = _name(record, "action_timestamp")
        self.lines.append(
            ActionLine(
                number=number,
                action=_action(record),
                reasoning=reasoning or values.text(words, "natural_language_action", location),
                before=_name(record, _BEFORE),
                after=_name(record, _AFTER),
                stem=f"step_{number}_{moment}" if moment else None,
                timestamp=moment,
                done=values.flag(record.get("done"), "done", location) is True,
                input_tokens=0.0 if again else _input_tokens(response),
            )
        )
        self._number, self.response = number, response


def _read_log(run: RunReader) -> LoggedRun:
    """Read the last run of the log. Raises Damaged without any line."""
    log, runs = LoggedRun(), 1
    for record in _records(run):
        number = Values().whole(record.get("step_num"), "step_num")
        number = number if number is not None and 0 <= number < 10**9 else None
        begins = _INITIAL in record and bool(log.lines)
        if number is not None:
            begins = log.is_over(number, record.get("response"))
        if begins:
            log, runs = LoggedRun(), runs + 1
        _take(log, record, number, run)
        if len(log.lines) > MAX_STEPS:
            raise Damaged(f"it has more than {MAX_STEPS:,} steps")
    if runs > 1:
        run.warnings.append(f"{LOG} holds {runs} runs, one after the other: the last one counts.")
    return log


def _take(log: LoggedRun, record: dict[str, Any], number: int | None, values: Values) -> None:
    log.instruction = values.text(record.get("instruction"), "instruction") or log.instruction
    if number == 0 and _is_initial(record):
        log.initial = _name(record, _AFTER) or _name(record, _BEFORE)
    elif number is not None:
        log.add(record, number, values)
    else:
        if "step_num" in record:
            values.refuse(record["step_num"], "step_num")
        log.initial = _name(record, _INITIAL) or log.initial
        log.mode = values.text(record.get("mode"), "mode") or log.mode
        for name in ("Error", "error"):
            log.error = values.text(record.get(name), name) or log.error


def _is_initial(record: dict[str, Any]) -> bool:
    """Return True if a line of number 0 is the state before the first action."""
    action = read_action(record.get("action"))
    return action is None or action.name.strip("_").lower() in _NO_ACTION


def _action(record: dict[str, Any]) -> OsworldAction | None:
    """Return the line's action, else those of the list ``actions`` as one."""
    if action := read_action(record.get("action")):
        return action
    several = [one for each in items_of(record.get("actions")) if (one := read_action(each))]
    return several[-1]._replace(text="\n".join(one.text for one in several)) if several else None


def _name(record: dict[str, Any], field_name: str) -> str | None:
    recorded = record.get(field_name)
    return recorded if isinstance(recorded, str) and recorded.strip() else None


def _records(run: RunReader) -> Iterator[dict[str, Any]]:
    """Yield the objects of the log's lines; others give a warning. Raises Damaged without any
    line."""
    empty = True
    try:
        for line in read_lines(run.path / LOG, folder=run.data):
            empty = False
            record = None if line.problem else _parsed(line.data)
            if record is None:
                why = line.problem or "it is no JSON object"
                run.warnings.append(f"Line {line.number} of {LOG} is left out: {why}.")
            else:
                yield record
    except UserError as error:
        raise Damaged(str(error)) from None
    if empty:
        raise Damaged(f"{LOG} is empty")


def _parsed(line: bytes) -> dict[str, Any] | None:
    check_structures(line)
    with suppress(ValueError, RecursionError):
        return parse_object(line)
    if not line.lstrip().startswith(b"{'") or len(line) > _MAX_REPR_BYTES:
        return None
    # Some writers print the object as Python does.
    with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return parse_object(json.dumps(ast.literal_eval(line.decode().strip())).encode())
    return None


def detect(path: Path) -> bool:
    """Return True for such a log, or a folder with one at most eight levels down."""
    if path.is_file():
        return path.name == LOG and _has_mark(files.head(path))
    logs = files.files(path, LOG, levels=_LEVELS, max_folders=files.MAX_FOLDERS)
    return any(_has_mark(files.head(log)) for log in islice(logs, files.MAX_FILES))


def _sources(path: Path) -> list[RunSource]:
    root = DataFolder(path if path.is_dir() else path.parent)
    logs = files.find_logs(path, KIND, LOG, _LEVELS, f"folders with {LOG}")
    return number_attempts(_source(root, log.parent) for log in logs)


def _has_mark(head: bytes) -> bool:
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    return begins and any(all(name in head for name in names) for names in _MARKS)


def _source(root: DataFolder, folder: Path) -> RunSource:
    example = files.name_of(folder)
    # Other projects number their examples, in each domain from 0.
    task_id = (
        example if _is_uuid(example) else f"{files.name_of(folder.resolve().parent)}.{example}"
    )
    key = TrajectoryKey(benchmark=KIND, agent=_agent(folder.resolve()), task_id=task_id)
    return RunSource(key, example, folder, root)


def _is_uuid(name: str) -> bool:
    with suppress(ValueError):
        return str(UUID(name)) == name
    return False


def _agent(folder: Path) -> str:
    """Return the name below the innermost level that is a setting; without such a level, the
    nearest one that is not a known domain."""
    above = [readable(parent.name) for parent in folder.parents if parent.name]
    for inner, outer in pairwise(above):
        if outer in _SETTINGS and inner not in _SETTINGS | _DOMAINS:
            return inner
    return next((name for name in above if name not in _SETTINGS | _DOMAINS), KIND)


def _read(run: RunReader) -> Trajectory:
    log = _read_log(run)
    if not log.lines:
        why = log.error or (f"mode {log.mode}" if log.mode else "no line is an action")
        raise Damaged(f"{LOG} holds no step ({why})")
    steps = _steps(run, log)
    actions = [line.action for line in log.lines if line.action]
    terminated = any(line.done for line in log.lines) or any(action.ends for action in actions)
    answers = [action.answer for action in actions if action.answer]
    return run.trajectory(
        log.instruction or _example_goal(run) or "",
        steps,
        answer=readable(answers[-1]) if answers else None,
        official_reward=_reward(run),
        terminated=terminated,
        truncated=not terminated,
        telemetry=_telemetry(log),
        metadata={
            "domain": files.name_of(run.path.resolve().parent),
            "infeasible": any(action.name == "FAIL" for action in actions),
            "error": log.error,
        },
    )


load = run_loader(_sources, _read)


def _steps(run: RunReader, log: LoggedRun) -> list[Step]:
    """Combine each line's action with the observation before it; the last observation is on a
    last step."""
    after = _initial(run, log)
    steps = []
    for index, line in enumerate(log.lines):
        before = run.named_picture(line.before, run.path)
        seen = after if before is None else after.model_copy(update={"screenshot": before})
        action = line.action.text if line.action else None
        steps.append(Step(index=index, observation=seen, reasoning=line.reasoning, action=action))
        after = _observed(run, line)
    if after.screenshot is None and (final := _first(run, "step_*_final.png")):
        after = after.model_copy(update={"screenshot": run.screenshot(final)})
    if after != Observation():
        steps.append(Step(index=len(steps), observation=after))
    return steps


def _initial(run: RunReader, log: LoggedRun) -> Observation:
    image = run.named_picture(log.initial, run.path)
    counts_from_0 = log.lines[0].number == 0
    if image is None and not counts_from_0 and (shot := _first(run, "step_0_*.png")):
        image = run.screenshot(shot)
    if image is None and log.lines[0].before is None:
        run.warnings.append(
            "The state before the first action was not kept: its step shows nothing."
        )
    return Observation(screenshot=image)


def _observed(run: RunReader, line: ActionLine) -> Observation:
    """Return the observation after the line's action: an image and an accessibility tree."""
    recorded, tree = line.after, None
    if recorded is None and line.before is None and line.stem:
        shot = f"{line.stem}.png"
        recorded = shot if run.data.has_file(run.path / shot) else None
    screenshot = run.named_picture(recorded, run.path)
    if line.stem and re.fullmatch(r"[\w@.-]+", line.stem):
        tree = run.tree(run.path / f"{line.stem}_a11y.xml")
    return Observation(screenshot=screenshot, axtree=tree)


def _first(run: RunReader, pattern: str) -> Path | None:
    return min(run.path.glob(pattern), default=None)


def _example_goal(run: RunReader) -> str | None:
    """Return the instruction of the example file in the root or next to it."""
    for file in _example_files(run.path.resolve()):
        # The example files are the user's own checkout, which may be next to the results.
        home = DataFolder(file.parents[2])
        if not home.has_file(file):
            continue
        try:
            example = read_object(home, file, max_bytes=_MAX_EXAMPLE_BYTES)
            return run.text(example.get("instruction"), "instruction", "of the example file")
        except ValueError as error:
            run.warnings.append(f"The example file is not read: {files.reason(error)}.")
    return None


def _example_files(folder: Path) -> Iterator[Path]:
    name = Path(folder.parent.name, f"{folder.name}.json")
    yield from (parent / _EXAMPLES / name for parent in folder.parents[:_LEVELS])


def _reward(run: RunReader) -> float | None:
    """Read ``result.txt``; None without it, or without a number of at least 0."""
    file = run.path / "result.txt"
    try:
        content = text_of(run.data.read(file, _MAX_RESULT_BYTES), file)
    except FileNotFoundError:
        return None
    except (OSError, UnsafeFile, NotUtf8) as error:
        run.warnings.append(f"The reward is not known: {files.reason(error)}.")
        return None
    reward = Values().number(content, "reward")
    if reward is not None and reward >= 0:
        return reward
    run.warnings.append("The reward is not known: result.txt holds no number of at least 0.")
    return None


def _telemetry(log: LoggedRun) -> dict[str, float]:
    times = [when for line in log.lines if (when := _time(line.timestamp))]
    elapsed = (times[-1] - times[0]).total_seconds() if len(times) > 1 else None
    tokens = sum(line.input_tokens for line in log.lines)
    return (
        {"n_steps": float(len(log.lines)), "n_err": float(log.error is not None)}
        | ({"elapsed": elapsed} if elapsed is not None and elapsed >= 0 else {})
        | ({"input_tokens": tokens} if tokens else {})
    )


def _time(written: str | None) -> datetime | None:
    for form in _FORMS:
        with suppress(ValueError, TypeError):
            return datetime.strptime(written or "", form)
    return None
