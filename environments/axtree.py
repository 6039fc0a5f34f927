"""The browser's accessibility tree as text, in the form that BrowserGym made common.

Input are the nodes of the DevTools call ``Accessibility.getFullAXTree`` and, for each DOM node
that carries one, its mark: the ``bid`` by which actions refer to it. One line a node, children
indented by a tab::

    RootWebArea 'Cart', focused
    \t[4] heading 'Cart', visible
    \t[7] spinbutton 'Quantity' value='2', clickable, visible, required
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Node = Mapping[str, Any]


class Mark(NamedTuple):
    """What the marking script found out about an element."""

    bid: str
    visible: bool = False
    clickable: bool = False


class Element(NamedTuple):
    """An element that an agent can act on."""

    bid: str
    role: str
    name: str


# An allow-list, so that properties which a newer Chromium adds do not change the text.
_FLAGS = frozenset({"focused", "required"})
_VALUED = frozenset(
    {"autocomplete", "checked", "disabled", "expanded", "hasPopup", "modal", "multiselectable"}
    | {"orientation", "pressed", "selected", "valuemax", "valuemin", "valuetext"}
)
_NEVER_SHOWN = frozenset({"none", "InlineTextBox", "LineBreak", "ListMarker"})
_INTERACTIVE = frozenset(
    {"button", "checkbox", "combobox", "link", "listbox", "menuitem", "option", "radio"}
    | {"searchbox", "slider", "spinbutton", "switch", "tab", "textbox"}
)


def axtree_text(nodes: Sequence[Node], marks: Mapping[int, Mark], *, pruned: bool = False) -> str:
    """The tree as text. ``marks`` maps ``backendDOMNodeId`` to the element's mark.

    ``pruned`` keeps what can be acted on and what has words: no nameless container (its children
    move up), no text that repeats the name of the element around it.
    """
    lines = [
        "\t" * depth + _line(node, marks.get(node.get("backendDOMNodeId", -1)))
        for node, depth in _walk(nodes, pruned)
    ]
    return "\n".join(lines)


def elements(nodes: Sequence[Node], marks: Mapping[int, Mark]) -> list[Element]:
    """The interactive elements in the order of the tree."""
    return [
        Element(mark.bid, role, _name(node))
        for node, _ in _walk(nodes, pruned=False)
        if (role := _value(node, "role")) in _INTERACTIVE
        and (mark := marks.get(node.get("backendDOMNodeId", -1)))
    ]


def _walk(nodes: Sequence[Node], pruned: bool) -> Iterator[tuple[Node, int]]:
    """The nodes that are shown, with their depth; a node that is not shown lends its place."""
    by_id = {node["nodeId"]: node for node in nodes}
    seen: set[str] = set()
    pending: list[tuple[Node, int, str]] = [(nodes[0], 0, "")] if nodes else []
    while pending:
        node, depth, around = pending.pop()
        if node["nodeId"] in seen:  # a malformed tree must not hang the recorder
            continue
        seen.add(node["nodeId"])
        shown = _shown(node, around, pruned)
        if shown:
            yield node, depth
        below = (depth + 1, _name(node)) if shown else (depth, around)
        children = [by_id[child] for child in node.get("childIds", ()) if child in by_id]
        pending.extend((child, *below) for child in reversed(children))


def _shown(node: Node, around: str, pruned: bool) -> bool:
    role = _value(node, "role")
    if node.get("ignored") or role in _NEVER_SHOWN:
        return False
    if role == "RootWebArea":
        return True
    name = _name(node)
    if role == "StaticText":
        return bool(name) and not (pruned and name in around)
    if role == "generic" and not name:
        return False
    return not pruned or bool(name) or role in _INTERACTIVE


def _line(node: Node, mark: Mark | None) -> str:
    label = f"{_value(node, 'role')} {_name(node)!r}"
    value = _value(node, "value")
    if value not in (None, ""):
        label += f" value={value!r}"
    if mark:
        label = f"[{mark.bid}] {label}"
    traits = [trait for trait in ("clickable", "visible") if mark and getattr(mark, trait)]
    return ", ".join([label, *traits, *_properties(node)])


def _properties(node: Node) -> Iterator[str]:
    for entry in sorted(node.get("properties", ()), key=lambda entry: str(entry["name"])):
        name, value = entry["name"], entry["value"].get("value")
        if name in _FLAGS and value:
            yield name
        elif name in _VALUED and value is not None:
            yield f"{name}={value!r}"


def _name(node: Node) -> str:
    return str(_value(node, "name") or "").strip()


def _value(node: Node, part: str) -> Any:
    return (node.get(part) or {}).get("value")
