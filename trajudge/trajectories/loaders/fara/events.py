"""The events of a Fara log (``web_surfer.log``): one JSON object a line, some of them actions.

The same log is a file in a task folder and a text in CUAVerifierBench.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders.files import text
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.util import python_json

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
