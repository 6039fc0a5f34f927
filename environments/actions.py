"""Actions as text in BrowserGym's syntax: one call with literal arguments, as ``click('12')``."""

from __future__ import annotations

import ast
from typing import NamedTuple

Argument = str | float | int

# Name of the action and the types of its arguments.
SIGNATURES: dict[str, tuple[type | tuple[type, ...], ...]] = {
    "click": (str,),
    "fill": (str, str),
    "select_option": (str, str),
    "press": (str, str),
    "goto": (str,),
    "go_back": (),
    "scroll": ((int, float), (int, float)),
    "noop": (),
    "send_msg_to_user": (str,),
}


class Action(NamedTuple):
    """A parsed action."""

    name: str
    arguments: tuple[Argument, ...]


class BadAction(ValueError):
    """The text is not one call of a known action with literal arguments."""


def write(name: str, *arguments: Argument) -> str:
    """The text of an action."""
    return f"{name}({', '.join(map(repr, arguments))})"


def parse(text: str) -> Action:
    """Read an action; nothing is evaluated. Raises BadAction."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
            raise BadAction(f"not a call: {text!r}")
        arguments = tuple(ast.literal_eval(argument) for argument in call.args)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadAction(f"not an action: {text!r}") from error
    types = SIGNATURES.get(call.func.id)
    if types is None:
        raise BadAction(f"no action is called {call.func.id!r}")
    if len(types) != len(arguments) or not all(map(isinstance, arguments, types)):
        raise BadAction(f"wrong arguments: {text!r}")
    return Action(call.func.id, arguments)
