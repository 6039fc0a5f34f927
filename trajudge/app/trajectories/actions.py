"""An action's parts, for a list and for a mark on the screenshot: what was done, to what, where.

Agents write actions in many forms: BrowserGym's and pyautogui's calls, WebArena's ``click [12]``,
WebVoyager's ``Type [2]; text``, ``Click at (471, 22)``, computer use's JSON. What is in no form
known here has its first word for a verb and no target. Nothing is run.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any, NamedTuple

MAX_PARSED = 20_000

Point = tuple[float, float]


class ActionParts(NamedTuple):
    """``target`` is the element's id, ``point`` pixels from the left and the top of the
    screenshot, ``typed`` the text that was entered."""

    verb: str
    target: str | None = None
    point: Point | None = None
    typed: str | None = None


# Calls whose first argument names an element, and those of them whose second is text.
_ON_ELEMENT = frozenset(
    {
        *("click", "dblclick", "double_click", "right_click", "hover", "tap", "focus"),
        *("fill", "type", "input", "input_text", "press", "clear", "select_option"),
        *("check", "uncheck", "drag_and_drop", "upload_file"),
    }
)
_TYPES = frozenset({"fill", "type", "input", "input_text", "select_option", "press"})
_TARGET_NAMES = ("bid", "target_id", "input_field_id", "index", "element_id", "id", "ref")
_TEXT_NAMES = ("text", "value", "text_value", "options", "content")
# Whose two numbers are a distance or a time, not a place.
_NO_PLACE = re.compile(r"scroll|wait|sleep|noop|moveRel|drag(?:Rel)|hotkey|key|tab", re.IGNORECASE)
_NUMBER = r"(-?\d{1,6}(?:\.\d{1,6})?)"
_AT = re.compile(rf"\A\s*([A-Za-z][\w. -]{{0,40}}?)\s+at\s+\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)")
_BRACKETS = re.compile(r"\A\s*([A-Za-z_]{1,40})\s*\[([^\]\s]{1,60})\](?:\s*;\s*|\s*\[)?(.*)", re.S)
_WORD = re.compile(r"\A\s*([\w.]{1,60})")
_JSON = re.compile(r"\A\s*([\w.]{1,60})[\s(]*(\{.*\})\s*\)?\s*\Z", re.S)


def action_parts(action: str | None) -> tuple[ActionParts, ...]:
    """Read every call of an action, in order; empty where there is none."""
    if not action or not action.strip():
        return ()
    if len(action) <= MAX_PARSED and (calls := _calls(action)):
        return tuple(_of_call(call) for call in calls)
    return (_of_text(action[:MAX_PARSED]),)


def _calls(action: str) -> list[ast.Call]:
    """Parse Python calls; empty where the action is anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(action.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    calls = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    known = [node for node in calls if isinstance(node, ast.Call)]
    return known if len(known) == len(tree.body) else []


def _of_call(call: ast.Call) -> ActionParts:
    function = call.func
    verb = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "call")
    values = [_value(argument) for argument in call.args]
    named = {keyword.arg: _value(keyword.value) for keyword in call.keywords if keyword.arg}
    if len(values) == 1 and isinstance(values[0], dict):
        named, values = {**values[0], **named}, []
    return _parts(verb, values, named)


class _JsonWords(ast.NodeTransformer):
    """Puts Python's constants in place of JSON's."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        words: dict[str, bool | None] = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(_JsonWords().visit(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _parts(verb: str, values: list[Any], named: dict[str, Any]) -> ActionParts:
    shown = str(named["action"]) if isinstance(named.get("action"), str) else verb
    point = _point(shown, values, named)
    target = next((named[name] for name in _TARGET_NAMES if _is_id(named.get(name))), None)
    typed = next((named[name] for name in _TEXT_NAMES if isinstance(named.get(name), str)), None)
    if point is None and target is None and verb.lower() in _ON_ELEMENT and values:
        target = values[0] if _is_id(values[0]) else None
        typed = typed or (_text(values[1]) if verb in _TYPES and len(values) > 1 else None)
    return ActionParts(shown, None if target is None else str(target), point, typed)


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and 0 < len(value) <= 60) or (
        isinstance(value, int) and not isinstance(value, bool)
    )


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else None


def _point(verb: str, values: list[Any], named: dict[str, Any]) -> Point | None:
    if _NO_PLACE.search(verb):
        return None
    pairs = [named.get("coordinate"), [named.get("x"), named.get("y")], values[:2]]
    for pair in pairs:
        if isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_number, pair)):
            return float(pair[0]), float(pair[1])
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e6


def _of_text(action: str) -> ActionParts:
    if match := _AT.match(action):
        return ActionParts(match[1], point=(float(match[2]), float(match[3])))
    if match := _JSON.match(action):
        try:
            fields = json.loads(match[2])
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict):
            return _parts(match[1], [], fields)
    if match := _BRACKETS.match(action):
        rest = match[3].strip()
        typed = rest.split("]", 1)[0] if match[1].lower() == "type" and rest else None
        is_element = match[1].lower() in _ON_ELEMENT and match[2].upper() != "WINDOW"
        target = match[2] if is_element else None
        return ActionParts(match[1], target=target, typed=typed)
    match = _WORD.match(action)
    return ActionParts(match[1] if match else action.split(maxsplit=1)[0][:40])
