"""A last message as a response in WebArena Verified's protocol, as a benchmark's adapter makes it.

A message that holds such a response is taken as it is, and so are the values of a declared answer
(``{"answer": ...}``, or a last line ``Answer: ...``). Of prose, every value that the task's schema
admits is retrieved: amounts, numbers, dates, durations, the names that the schema lists, words that
meet its pattern. It is a reader of its own, shorter than the one behind the labels, so that the two
check each other; it knows the task, never the right answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from trajudge.environments.model.wording import LINE
from trajudge.environments.specification import NOT_POSSIBLE
from trajudge.rules.verified.answers import ParseFailure, read_response
from trajudge.rules.verified.tasks import Schema, Task

_AMOUNT = re.compile(r"-?\$\s?-?\d[\d,]*(?:\.\d+)?")
_NUMBER = re.compile(r"(?<![\w.,$/-])-?\d[\d,]*(?:\.\d+)?(?![\w-])")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_UNIT = r"\d+(?:\.\d+)? ?(?:days?|hours?|h|minutes?|min|m)\b"
_DURATION = re.compile(rf"\b{_UNIT}(?: (?:and )?{_UNIT})*")


def response_text(task: Task, message: str | None) -> str | None:
    """Return the response as JSON text; None for a run that ended without a message."""
    if message is None or not message.strip():
        return None
    if not isinstance(read_response(message), ParseFailure):
        return message
    check = task.answer_check
    asks = check is not None and check.expected.task_type == "retrieve"
    retrieved = None
    values = _declared(message)
    possible = values is None or [str(value).strip().casefold() for value in values] != ["none"]
    if check is not None and asks and possible:
        retrieved = _retrieved(check.results_schema, values or [message])
    return json.dumps(
        {
            "task_type": "RETRIEVE" if asks else "MUTATE",
            "status": "SUCCESS" if possible else NOT_POSSIBLE,
            "retrieved_data": retrieved,
            "error_details": None,
        }
    )


def _declared(message: str) -> list[Any] | None:
    """Return the values of a declared answer; None for a message in prose."""
    last = message.strip().splitlines()[-1]
    if last.startswith(LINE):
        return last.removeprefix(LINE).split(";")
    try:
        declared = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(declared, dict) or "answer" not in declared:
        return None
    answer = declared["answer"]
    return answer if isinstance(answer, list) else [answer]


def _retrieved(schema: Schema, pieces: Sequence[Any]) -> list[Any] | None:
    items = schema.get("items") or {}
    if items.get("type") != "object":
        return _values(items, pieces) or None
    parts = items["properties"]
    # Several values are declared in the order in which they are asked for.
    read = [[piece] for piece in pieces] if len(pieces) == len(parts) else [pieces] * len(parts)
    return [
        {name: _alone(_values(parts[name], own)) for name, own in zip(parts, read, strict=True)}
    ]


def _alone(values: Sequence[Any]) -> Any:
    """Return the one value; of several the list, which is no value, and None of none."""
    return values[0] if len(values) == 1 else list(values) or None


def _values(schema: Schema, pieces: Sequence[Any]) -> list[Any]:
    """Return the different values of one kind, in the order in which they are mentioned."""
    read = _reader(schema)
    return list(dict.fromkeys(value for piece in pieces for value in read(str(piece))))


def _reader(schema: Schema) -> Callable[[str], list[Any]]:
    if names := schema.get("enum"):
        return _any_of([str(name) for name in names])
    if pattern := schema.get("pattern"):
        return re.compile(rf"\b{str(pattern).strip('^$')}\b").findall
    kind = schema.get("format") or schema.get("type")
    readers: dict[Any, Callable[[str], list[Any]]] = {
        "currency": lambda text: (
            [_digits(amount) for amount in _AMOUNT.findall(text)]
            or [_digits(amount) for amount in _NUMBER.findall(text)]
        ),
        "number": lambda text: [_digits(amount) for amount in _NUMBER.findall(text)],
        "date": _DATE.findall,
        "duration": _DURATION.findall,
    }
    return readers.get(kind, lambda text: [text])


def _digits(text: str) -> float:
    return float(re.sub(r"[$,\s]", "", text))


def _any_of(names: Sequence[str]) -> Callable[[str], list[Any]]:
    """Find the longest of the names at each place."""
    ranked = sorted(names, key=lambda name: (-len(name), name))
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ranked))})(?!\w)", re.IGNORECASE)
    return pattern.findall
