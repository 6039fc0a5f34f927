"""What a policy sees: a short dictionary, or all fields of BrowserGym's observation (0.14.3).

Both are made of what the session shows (``AgentObservation``), so that they are the same in both
engines. There is no clock in them: times are numbers of steps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from trajudge.environments.chromium import AgentObservation
from trajudge.environments.chromium.action_syntax import MAX_TEXT
from trajudge.environments.chromium.observation import PageDetails
from trajudge.environments.gym.spaces import JsonValue, UnicodeText
from trajudge.prompts.render import sendable

Picture = NDArray[np.uint8]
Size = tuple[int, int, int]

_SHORT, _LONG, _TREE, _NODES = 2**14, 2**17, 2**20, 2**21  # bytes that a field may take
_STEPS = 10**6
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LINE = re.compile(rf"(\t*)(?:\[(\w+)\] )?(\S+) ({_QUOTED})(.*)")
_TRAIT = re.compile(rf"(?: |, )(\w+)(?:=({_QUOTED}|[^,]*))?")
_ROOT = {"nodes": [{"nodeId": "0", "role": {"value": "RootWebArea"}, "childIds": []}]}
_HTML: dict[str, Any] = {"documents": [], "strings": []}


class Seen(NamedTuple):
    """What an observation is made of. ``messages`` are (role, step, text) of the conversation;
    ``details`` is None where only the short form is wanted."""

    goal: str
    view: AgentObservation
    last_action: str
    step: int
    picture: Picture | None
    messages: Sequence[tuple[str, int, str]] = ()
    details: PageDetails | None = None


def text_space(size: Size | None) -> Dict:
    """Return the space of the short form; ``size`` is that of screenshots, if there are any."""
    spaces: dict[str, gymnasium.Space[Any]] = {
        "goal": UnicodeText(_LONG),
        "axtree": UnicodeText(_TREE),
        "url": UnicodeText(_LONG),
        "title": UnicodeText(_SHORT),
        "focused": UnicodeText(_SHORT),
        "last_action": UnicodeText(_LONG),
        "last_action_error": UnicodeText(_SHORT),
        "step": Discrete(_STEPS),
    }
    if size is not None:
        spaces["screenshot"] = Box(0, 255, size, np.uint8)
    return Dict(spaces)


def text_observation(seen: Seen) -> dict[str, Any]:
    """Return the short form."""
    page = seen.view.observation
    short = {
        "goal": seen.goal,
        "axtree": _cut(page.axtree or "", _TREE),
        "url": page.url or "",
        "title": _cut(seen.view.title, _SHORT),
        "focused": seen.view.focused or "",
        "last_action": sendable(seen.last_action)[:MAX_TEXT],
        "last_action_error": page.page_error or "",
        "step": seen.step,
    }
    return short if seen.picture is None else {**short, "screenshot": seen.picture}


def browsergym_space(size: Size | None) -> Dict:
    """Return the space of BrowserGym's fields."""
    return Dict(
        {
            "chat_messages": JsonValue(_LONG, []),
            "goal": UnicodeText(_LONG),
            "goal_object": JsonValue(_LONG, []),
            "open_pages_urls": JsonValue(_LONG, []),
            "open_pages_titles": JsonValue(_LONG, []),
            "active_page_index": Box(0, _STEPS, (1,), np.int64),
            "url": UnicodeText(_LONG),
            "screenshot": Box(0, 255, size or (1, 1, 3), np.uint8),
            "dom_object": JsonValue(_NODES, _HTML),
            "axtree_object": JsonValue(_NODES, _ROOT),
            "extra_element_properties": JsonValue(_NODES, {}),
            "focused_element_bid": UnicodeText(_SHORT),
            "last_action": UnicodeText(_LONG),
            "last_action_error": UnicodeText(_SHORT),
            "elapsed_time": Box(0, np.inf, (1,), np.float64),
        }
    )


def browsergym_observation(seen: Seen) -> dict[str, Any]:
    """Return BrowserGym's fields. Without pictures the screenshot is one black pixel."""
    view, page = seen.view, seen.view.observation
    dom, elements = seen.details or PageDetails(_HTML, {})
    return {
        "chat_messages": [
            {"role": role, "timestamp": float(step), "message": text}
            for role, step, text in seen.messages
        ],
        "goal": seen.goal,
        "goal_object": [{"type": "text", "text": seen.goal}],
        "open_pages_urls": list(view.open_pages),
        "open_pages_titles": list(view.open_titles),
        "active_page_index": np.array([view.active_page], np.int64),
        "url": page.url or "",
        "screenshot": np.zeros((1, 1, 3), np.uint8) if seen.picture is None else seen.picture,
        "dom_object": dom,
        "axtree_object": axtree_object(page.axtree or ""),
        "extra_element_properties": elements,
        "focused_element_bid": view.focused or "",
        "last_action": sendable(seen.last_action)[:MAX_TEXT],
        "last_action_error": page.page_error or "",
        "elapsed_time": np.zeros(1),
    }


def axtree_object(tree: str) -> dict[str, Any]:
    """Return the nodes of a tree's text in the form of the DevTools protocol's
    ``Accessibility.getFullAXTree``, with ``browsergym_id`` where a line carries a bid."""
    nodes: list[dict[str, Any]] = []
    around: list[list[str]] = []  # the children of the nodes that the next line may stand in
    for number, line in enumerate(tree.split("\n")):
        parts = _LINE.fullmatch(line)
        if parts is None:
            continue
        tabs, bid, role, name, rest = parts.groups()
        children: list[str] = []
        node: dict[str, Any] = {
            "nodeId": str(number),
            "role": {"type": "role", "value": role},
            "name": {"type": "computedString", "value": _value(name)},
            "properties": [],
            "childIds": children,
        }
        if bid is not None:
            node["browsergym_id"] = bid
        for trait, text in _TRAIT.findall(rest):
            if trait == "value":
                node["value"] = {"value": _value(text)}
            elif trait not in ("clickable", "visible"):
                value = {"value": _value(text) if text else True}
                node["properties"].append({"name": trait, "value": value})
        depth = len(tabs)
        if depth:
            around[depth - 1].append(node["nodeId"])
        del around[depth:]
        around.append(children)
        nodes.append(node)
    return {"nodes": nodes or [dict(_ROOT["nodes"][0])]}


def _value(text: str) -> Any:
    """Return what a literal in a tree's line says."""
    if text[:1] in ("'", '"') and "\\" not in text:
        return text[1:-1]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text that takes at most so many bytes."""
    if 4 * len(text) <= most:
        return text
    return text.encode(errors="replace")[:most].decode(errors="ignore")
