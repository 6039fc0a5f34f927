"""What an OSWorld agent said and did in one line of ``traj.jsonl``, whatever shape it has.

Actions are code (``pyautogui.click(1, 2)``), one word (``DONE``), or an object: ``action_type``
and parameters (``computer_13``), or ``name`` and ``input`` (tool calls). Responses are a text, an
object with ``raw_response``, or a list of blocks.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Raw

from trajudge.trajectories.loaders.common.lazy_json import (
    NULL,
    elements,
    fields,
    scalar,
    value,
    whole_string,
)
from trajudge.trajectories.loaders.files import readable

MAX_TEXT = 100_000
_ENDINGS = {"DONE", "FAIL"}
_ANSWERING = {"answer", "terminate"}
_ANSWER_NAMES = ("text", "answer", "result", "content", "message")
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_BLOCK_TEXTS = ("thinking", "thought", "reasoning", "text", "content")
_RAW_TEXTS = ("raw_response", "response")
_BLOCK_LEVELS = 3


class OsworldAction(NamedTuple):
    """``text`` as a step shows it, ``name`` of an object, call or single word. ``answer`` is what
    an answering tool told."""

    text: str
    name: str
    answer: str | None

    @property
    def ends(self) -> bool:
        """Whether the agent ended its run by it."""
        return self.name in _ENDINGS or self.name.lower() in _ANSWERING


def read_action(raw: Raw) -> OsworldAction | None:
    """Read one action; None for null and blanks. Raises Damaged for one of more than 4 MiB."""
    recorded = value(raw)
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
    return OsworldAction(text, name, _told(text, call[2]) if call and answers else None)


def _of_object(action: dict[str, object]) -> OsworldAction:
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


def _told(text: str, inside: str) -> str | None:
    """Return the text that a call ``answer("...")`` or ``terminate(answer="...")`` gives."""
    try:
        call = ast.parse(text.strip(), mode="eval").body if len(text) <= MAX_TEXT else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if isinstance(call, ast.Call):
        named = {word.arg: word.value for word in call.keywords}
        places = [*call.args[:1], *(named[name] for name in _ANSWER_NAMES if name in named)]
        constants = [place.value for place in places if isinstance(place, ast.Constant)]
        return next(
            (constant for constant in constants if isinstance(constant, str) and constant.strip()),
            None,
        )
    return inside.strip() or None


def read_response(raw: Raw, warnings: list[str], place: str) -> str | None:
    """Return what the model said, without values of more than 100,000 characters, such as pictures
    that it repeats; ``place`` names the line in the sentence about one that is left out."""
    texts = []
    for text in _texts(raw):
        if len(text) > MAX_TEXT:
            warnings.append(f"A text of {len(text):,} characters {place} is left out.")
        elif text.strip():
            texts.append(readable(text.strip()))
    if not texts and any(map(_is_unknown, elements(raw))):
        warnings.append(f"The response {place} is not read: it is in no form that is known.")
    return "\n".join(texts) or None


def _is_unknown(block: Raw) -> bool:
    """Tell whether a part of a response is no text, and no object of a known form."""
    known = {"type", "usage", *_BLOCK_TEXTS, *_RAW_TEXTS}
    return whole_string(block) is None and not fields(block).keys() & known


def _texts(raw: Raw, levels: int = _BLOCK_LEVELS) -> Iterator[str]:
    """Yield the texts of a response: its own, or those of its blocks in their order."""
    text = whole_string(raw)
    if text is not None:
        yield text
        return
    for block in elements(raw) if levels else ():
        within = fields(block)
        names = _BLOCK_TEXTS if within.keys() & set(_BLOCK_TEXTS) else _RAW_TEXTS
        inner = [within[name] for name in names if name in within] if within else [block]
        for one in inner:
            yield from _texts(one, levels - 1)


def input_tokens(raw: Raw) -> float:
    """Return the prompt's tokens that a response's ``usage`` tells, 0 where it tells none."""
    usage = fields(fields(raw).get("usage", NULL))
    for name in ("input_tokens", "prompt_tokens"):
        count = scalar(usage.get(name, NULL))
        if isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count < 1e12:
            return float(count)
    return 0.0
