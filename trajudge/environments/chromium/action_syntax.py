"""Actions as text in BrowserGym's syntax: one call with literal arguments, as ``click('12')``.

Beyond BrowserGym's, ``answer(value)`` ends a run with a declared answer: a text, a number, or a
list of them, which is compared by its type and not read as prose, or None: it is not possible.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeGuard

Argument = str | float | int | bool | Sequence[str | float | int | None] | None

MAX_TEXT = 20_000  # characters of an action
MAX_NUMBER = 100_000  # pixels or milliseconds

_NUMBER = (int, float)
_CHOICE = (str, list)
_VALUE = (str, int, float, list, type(None))


class Parameter(NamedTuple):
    """An argument of an action; one that is not required comes last. ``free`` numbers are neither
    pixels nor milliseconds: they have no limit and may stand in a list."""

    name: str
    type: type | tuple[type, ...] = str
    required: bool = True
    free: bool = False


_BID = Parameter("bid")
_BUTTON = Parameter("button", required=False)
_MODIFIERS = Parameter("modifiers", list, required=False)
_KEY = Parameter("key")
_TEXT = Parameter("text")
_X, _Y = Parameter("x", _NUMBER), Parameter("y", _NUMBER)
_FROM = (Parameter("from_x", _NUMBER), Parameter("from_y", _NUMBER))
_TO = (Parameter("to_x", _NUMBER), Parameter("to_y", _NUMBER))
_SCROLLED = (Parameter("delta_x", _NUMBER), Parameter("delta_y", _NUMBER))

SIGNATURES: dict[str, tuple[Parameter, ...]] = {
    "click": (_BID, _BUTTON, _MODIFIERS),
    "dblclick": (_BID, _BUTTON, _MODIFIERS),
    "hover": (_BID,),
    "focus": (_BID,),
    "clear": (_BID,),
    "fill": (_BID, Parameter("value"), Parameter("enable_autocomplete_menu", bool, required=False)),
    "select_option": (_BID, Parameter("options", _CHOICE)),
    "press": (_BID, Parameter("key_comb")),
    "drag_and_drop": (Parameter("from_bid"), Parameter("to_bid")),
    "upload_file": (_BID, Parameter("file", _CHOICE)),
    "goto": (Parameter("url"),),
    "go_back": (),
    "go_forward": (),
    "new_tab": (),
    "tab_close": (),
    "tab_focus": (Parameter("index", int),),
    "scroll": _SCROLLED,
    "scroll_at": (_X, _Y, *_SCROLLED),
    "mouse_move": (_X, _Y),
    "mouse_down": (_X, _Y, _BUTTON),
    "mouse_up": (_X, _Y, _BUTTON),
    "mouse_click": (_X, _Y, _BUTTON),
    "mouse_dblclick": (_X, _Y, _BUTTON),
    "mouse_drag_and_drop": (*_FROM, *_TO),
    "mouse_upload_file": (_X, _Y, Parameter("file", _CHOICE)),
    "keyboard_press": (_KEY,),
    "keyboard_down": (_KEY,),
    "keyboard_up": (_KEY,),
    "keyboard_type": (_TEXT,),
    "keyboard_insert_text": (_TEXT,),
    "noop": (Parameter("wait_ms", _NUMBER, required=False),),
    "send_msg_to_user": (_TEXT,),
    "report_infeasible": (Parameter("reason"),),
    "answer": (Parameter("value", _VALUE, free=True),),
}
"""BrowserGym's actions of the subsets chat, infeas, bid, nav, tab and coord, and ``answer``."""

_DEFAULTS: dict[str, object] = {"button": "left", "modifiers": []}
LAST_WORDS = ("send_msg_to_user", "report_infeasible", "answer")  # the actions that end a run


class Action(NamedTuple):
    """A parsed action; the arguments in the order of its parameters."""

    name: str
    arguments: tuple[Argument, ...]


class BadAction(ValueError):
    """The text is not one call of a known action with literal arguments."""


def write(name: str, *arguments: Argument) -> str:
    """Return the text of an action."""
    return f"{name}({', '.join(map(repr, arguments))})"


@lru_cache(maxsize=64)  # each is read by the page and by whoever asks what was said
def parse(text: str) -> Action:
    """Read an action; nothing is evaluated. Raises BadAction."""
    if len(text) > MAX_TEXT:
        raise BadAction(f"an action of {len(text)} characters: at most {MAX_TEXT} are read")
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise BadAction(f"not a call: {_short(text)}")
        arguments = tuple(ast.literal_eval(argument) for argument in call.args)
        named = {word.arg or "**": ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        if isinstance(error, BadAction):
            raise
        raise BadAction(f"not an action: {_short(text)}") from error
    parameters = SIGNATURES.get(call.func.id)
    if parameters is None:
        raise BadAction(f"no action is called {call.func.id!r}")
    return Action(call.func.id, _bound(parameters, arguments, named, text))


def _bound(
    parameters: tuple[Parameter, ...],
    positional: tuple[object, ...],
    named: dict[str, object],
    text: str,
) -> tuple[Argument, ...]:
    rest = parameters[len(positional) :]
    # What stands between the last argument and a later one that is named has its default.
    last = max((n for n, later in enumerate(rest, 1) if later.name in named), default=0)
    later = (named.pop(one.name, _DEFAULTS.get(one.name)) for one in rest[:last])
    values = [*positional, *later]
    needed = sum(parameter.required for parameter in parameters)
    if named or not needed <= len(values) <= len(parameters):
        raise BadAction(f"wrong arguments: {_short(text)}")
    return tuple(
        _checked(value, parameter, text)
        for value, parameter in zip(values, parameters, strict=False)
    )


def _checked(value: object, parameter: Parameter, text: str) -> Argument:
    if isinstance(value, bool) and parameter.type is bool:
        return value
    if not isinstance(value, parameter.type) or isinstance(value, bool):
        raise BadAction(f"wrong arguments: {_short(text)}")
    if value is None:
        return None
    if isinstance(value, (int, float)):
        if not math.isfinite(value) or (abs(value) > MAX_NUMBER and not parameter.free):
            raise BadAction(f"{parameter.name} is beyond {MAX_NUMBER}: {_short(text)}")
        return value
    parts = value if isinstance(value, list) else [value]
    words: list[str | float | int | None] = [
        part
        for part in parts
        if _is_text(part) or (parameter.free and (part is None or _is_number(part)))
    ]
    if len(words) < len(parts):
        raise BadAction(f"{parameter.name} is no text: {_short(text)}")
    return words if isinstance(value, list) else words[0]


def spoken(text: str) -> str | None:
    """Return the last message that an action leaves, a declared answer as the JSON object
    ``{"answer": ...}``; None for an action that does not end the run."""
    try:
        name, arguments = parse(text)
    except BadAction:
        return None
    if name not in LAST_WORDS:
        return None
    declared = json.dumps({"answer": arguments[0]}, ensure_ascii=False)
    return declared if name == "answer" else str(arguments[0])


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, _NUMBER) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: object) -> TypeGuard[str]:
    """Half a surrogate pair is no text: the browser's protocol cannot carry it."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(text: str) -> str:
    return ascii(text) if len(text) <= 100 else f"{text[:100]!a}..."
