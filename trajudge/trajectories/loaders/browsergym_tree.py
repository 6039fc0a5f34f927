"""The accessibility tree of a BrowserGym observation as text, where only the object was kept.

Most agents of AgentLab write the text beside the object or in its place (``axtree_txt``); one that
looks at screenshots alone, or one of the user's own, may leave the object as Chromium gave it. The
text has BrowserGym's form: a tab for each level, ``[bid] role 'name' value='…', property=…``.
"""

from __future__ import annotations

from collections.abc import Mapping

from trajudge.trajectories.loaders.files import text
from trajudge.trajectories.pickles.objects import mapping

Node = Mapping[object, object]

_UNSHOWN_ROLES = {"LineBreak"}
_UNSHOWN_PROPERTIES = {
    *("editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"),
}
# Properties that are shown by their name alone, where they hold.
_FLAGS = {"required", "focused", "atomic"}


def tree_text(recorded: object) -> str | None:
    """Write the tree that Chromium gave; None for anything else."""
    listed = mapping(recorded).get("nodes")
    nodes = [mapping(node) for node in listed] if isinstance(listed, list | tuple) else []
    by_id = {str(node.get("nodeId")): node for node in nodes[1:]}
    lines = list[str]()
    waiting = [(nodes[0], 0, "")] if nodes else []
    while waiting:
        node, depth, above = waiting.pop()
        name = "" if _role(node) in _UNSHOWN_ROLES else _value(node, "name")
        line = _line(node, name, above)
        if line is not None:
            lines.append("\t" * depth + line)
        listed = node.get("childIds")
        children = [str(child) for child in listed] if isinstance(listed, list | tuple) else []
        # Each node is written once, whatever a damaged file says.
        inside = [child for one in children if (child := by_id.pop(one, None)) is not None]
        deeper = depth if line is None else depth + 1
        waiting += [(child, deeper, str(name or "")) for child in reversed(inside)]
    return text("\n".join(lines))


def _line(node: Node, name: object, above: str) -> str | None:
    """Write a node; None for one that says nothing, such as text that its parent's name holds."""
    role = _role(node)
    if role in _UNSHOWN_ROLES or "name" not in node:
        return None
    properties = _properties(node)
    label = str(name or "")
    if (role == "generic" and not properties) or (role == "StaticText" and label in above):
        return None
    bid, value = node.get("browsergym_id"), _value(node, "value")
    shown = role if role == "generic" and not label else f"{role} {label.strip()!r}"
    shown = shown if bid is None else f"[{bid}] {shown}"
    shown = shown if value is None else f"{shown} value={value!r}"
    return ", ".join([shown, *properties])


def _properties(node: Node) -> list[str]:
    listed = node.get("properties")
    shown = list[str]()
    for each in map(mapping, listed if isinstance(listed, list | tuple) else ()):
        name, value = str(each.get("name")), _value(each, "value")
        if value is None or name in _UNSHOWN_PROPERTIES:
            continue
        if name not in _FLAGS:
            shown.append(f"{name}={value!r}")
        elif value:
            shown.append(name)
    return shown


def _role(node: Node) -> str:
    return str(_value(node, "role"))


def _value(node: Node, name: str) -> object:
    return mapping(node.get(name)).get("value")
