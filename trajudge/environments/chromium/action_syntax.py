"""Actions as text in BrowserGym's syntax: one call with literal arguments, as ``click('12')``.

Beyond BrowserGym's, ``answer(value)`` ends a run with a declared answer: a text, a number, or a
list of them, which is compared by its type and not read as prose, or None: it is not possible.
"""

from __future__ import annotations

import ast
import json
import math
from typing import NamedTuple, TypeGuard

Argument = str | float | int | list[str | float | int | None] | None

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

SIGNATURES: dict[str, tuple[Parameter, ...]] = {
    "click": (_BID, _BUTTON),
    "dblclick": (_BID, _BUTTON),
    "hover": (_BID,),
    "fill": (_BID, Parameter("value")),
    "select_option": (_BID, Parameter("options", _CHOICE)),
    "press": (_BID, Parameter("key_comb")),
    "goto": (Parameter("url"),),
    "go_back": (),
    "go_forward": (),
    "scroll": (Parameter("delta_x", _NUMBER), Parameter("delta_y", _NUMBER)),
    "noop": (Parameter("wait_ms", _NUMBER, required=False),),
    "send_msg_to_user": (Parameter("text"),),
    "report_infeasible": (Parameter("reason"),),
    "answer": (Parameter("value", _VALUE, free=True),),
}
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
    values = [*positional, *(named.pop(later.name) for later in rest if later.name in named)]
    needed = sum(parameter.required for parameter in parameters)
    if named or not needed <= len(values) <= len(parameters):
        raise BadAction(f"wrong arguments: {_short(text)}")
    return tuple(
        _checked(value, parameter, text)
        for value, parameter in zip(values, parameters, strict=False)
    )


def _checked(value: object, parameter: Parameter, text: str) -> Argument:
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
