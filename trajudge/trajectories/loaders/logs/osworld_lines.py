"""The lines of an OSWorld-style ``traj.jsonl``: one action each, and what stands between them.

The writer opens the file to append, so that a task that was run again stands behind its earlier
run: the last one counts. A model that gave several actions has a line for each, all with its step
number and response.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Raw

from trajudge.trajectories.loaders.common.lazy_json import (
    NULL,
    decoded,
    elements,
    parse_object,
    scalar,
)
from trajudge.trajectories.loaders.files import Damaged
from trajudge.trajectories.loaders.logs.osworld_actions import (
    OsworldAction,
    input_tokens,
    read_action,
    read_response,
)
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.jsonl import read_lines
from trajudge.trajectories.util.safe_files import DataFolder

MAX_STEPS = 10_000
_MAX_REPR_BYTES = 2**20
_BEFORE, _AFTER = "screenshot_file_before_exec", "screenshot_file"
_INITIAL = "initial_state"
# What writers call the line of the state before the first action, which has the number 0; other
# lines of that number are actions of writers that count from 0.
_NO_ACTION = {"", "init", "initial", "initialize", "initial_state", "none", "reset", "start"}


@dataclass(frozen=True)
class ActionLine:
    """One action; ``stem`` is how the files of its moment begin (``step_2_20260622@...``), if the
    line says when it was. ``before`` and ``after`` are recorded names of pictures."""

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
    """The last run of a file: its lines, the name of the picture before the first, the error that
    ended it."""

    lines: list[ActionLine] = field(default_factory=list)
    instruction: str | None = None
    initial: str | None = None
    error: str | None = None
    mode: str | None = None
    response: bytes = b""
    _number: int = -1

    def is_over(self, number: int, response: bytes) -> bool:
        """Tell whether a line with this step number belongs to a later run: the number falls, or
        the first one comes again with another response or after an error."""
        if number < self._number or (self.error is not None and number <= 1):
            return True
        is_first = bool(self.lines) and number == self._number == self.lines[0].number <= 1
        return is_first and response != self.response

    def add(self, record: dict[str, Raw], number: int, values: Values) -> None:
        """Add the action of a line. Raises Damaged for a value that is too large."""
        raw = record.get("response", NULL)
        again = bool(self.lines) and number == self._number and bytes(raw) == self.response
        place = f"of step {number}"
        reasoning = None if again else read_response(raw, values.warnings, place)
        timestamp = scalar(record.get("action_timestamp", NULL))
        moment = timestamp if isinstance(timestamp, str) and timestamp else None
        done = values.flag(decoded(record.get("done", NULL)), "done", place)
        words = decoded(record.get("natural_language_action", NULL))
        self.lines.append(
            ActionLine(
                number=number,
                action=_action(record),
                reasoning=reasoning or values.text(words, "natural_language_action", place),
                before=_name(record, _BEFORE),
                after=_name(record, _AFTER),
                stem=f"step_{number}_{moment}" if moment else None,
                timestamp=moment,
                done=done is True,
                input_tokens=0.0 if again else input_tokens(raw),
            )
        )
        self._number, self.response = number, bytes(raw)


def read_run(file: Path, root: DataFolder, warnings: list[str]) -> LoggedRun:
    """Read the last run of a file. Raises Damaged for one without any line."""
    run, runs, values = LoggedRun(), 1, Values(warnings)
    for record in _records(file, root, warnings):
        number = _step_number(record)
        response = bytes(record.get("response", NULL))
        if number is None:
            begins = _INITIAL in record and bool(run.lines)
        else:
            begins = run.is_over(number, response)
        if begins:
            run, runs = LoggedRun(), runs + 1
        _take(run, record, number, values)
        if len(run.lines) > MAX_STEPS:
            raise Damaged(f"it has more than {MAX_STEPS:,} steps")
    if runs > 1:
        warnings.append(f"{file.name} holds {runs} runs, one after the other: the last one counts.")
    return run


def _take(run: LoggedRun, record: dict[str, Raw], number: int | None, values: Values) -> None:
    run.instruction = _text(record, "instruction", values) or run.instruction
    if number == 0 and _is_initial(record):
        run.initial = _name(record, _AFTER) or _name(record, _BEFORE)
    elif number is not None:
        run.add(record, number, values)
    else:
        if "step_num" in record:
            values.refuse(decoded(record["step_num"]), "step_num")
        run.initial = _name(record, _INITIAL) or run.initial
        run.mode = _text(record, "mode", values) or run.mode
        for name in ("Error", "error"):
            run.error = _text(record, name, values) or run.error


def _text(record: dict[str, Raw], name: str, values: Values) -> str | None:
    return values.text(decoded(record.get(name, NULL)), name)


def _is_initial(record: dict[str, Raw]) -> bool:
    """Tell whether a line of number 0 is the state before the first action."""
    action = read_action(record.get("action", NULL))
    return action is None or action.name.strip("_").lower() in _NO_ACTION


def _step_number(record: dict[str, Raw]) -> int | None:
    """Return the step number; None of a line that is no action."""
    number = Values([]).whole(scalar(record.get("step_num", NULL)), "step_num")
    return number if number is not None and 0 <= number < 10**9 else None


def _action(record: dict[str, Raw]) -> OsworldAction | None:
    """Return the line's action, else those of the list ``actions`` as one."""
    action = read_action(record.get("action", NULL))
    if action is not None:
        return action
    several = [one for raw in elements(record.get("actions", NULL)) if (one := read_action(raw))]
    if not several:
        return None
    return several[-1]._replace(text="\n".join(one.text for one in several))


def _name(record: dict[str, Raw], field_name: str) -> str | None:
    recorded = scalar(record.get(field_name, NULL))
    return recorded if isinstance(recorded, str) and recorded.strip() else None


def _records(file: Path, root: DataFolder, warnings: list[str]) -> Iterator[dict[str, Raw]]:
    """Yield the objects of the lines; others go to ``warnings``. Raises Damaged for no line."""
    empty = True
    try:
        for line in read_lines(file, folder=root):
            empty = False
            record = None if line.problem else _parsed(line.data)
            if record is None:
                why = line.problem or "it is no JSON object"
                warnings.append(f"Line {line.number} of {file.name} is left out: {why}.")
            else:
                yield record
    except UserError as error:
        raise Damaged(str(error)) from None
    if empty:
        raise Damaged(f"{file.name} is empty")


def _parsed(line: bytes) -> dict[str, Raw] | None:
    try:
        return parse_object(line)
    except (ValueError, RecursionError):
        pass
    if not line.lstrip().startswith(b"{'") or len(line) > _MAX_REPR_BYTES:
        return None
    try:  # some writers print the object as Python does
        return parse_object(json.dumps(ast.literal_eval(line.decode().strip())).encode())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
