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
    """An element that an agent can act on. ``value`` is its text, choice, or state if it is ticked
    ("true", "false", "mixed"); ``in_dialog`` says whether it lies inside a dialog, ``group`` is the
    name of the group that it belongs to (of radio buttons, mostly)."""

    bid: str
    role: str
    name: str
    value: str = ""
    in_dialog: bool = False
    group: str = ""


class AccessibilityTree(NamedTuple):
    """The tree as text, full and pruned; what can be acted on; the bid of what has the focus."""

    full: str
    pruned: str
    elements: list[Element]
    focused: str | None


# An allow-list, so that properties which a newer Chromium adds do not change the text.
_FLAGS = frozenset({"focused", "required"})
_VALUED = frozenset(
    {"autocomplete", "checked", "disabled", "expanded", "hasPopup", "modal", "multiselectable"}
    | {"orientation", "pressed", "selected", "valuemax", "valuemin", "valuetext"}
)
_NEVER_SHOWN = frozenset({"none", "InlineTextBox", "LineBreak", "ListMarker"})
_INTERACTIVE = frozenset(
    {"button", "checkbox", "combobox", "link", "listbox", "menuitem", "option", "radio"}
    | {"searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem"}
    | {"menuitemcheckbox", "menuitemradio", "DisclosureTriangle"}
    | {"Date", "DateTime", "InputTime", "ColorWell"}  # Chromium's own, for native inputs
)


_DIALOGS = frozenset({"dialog", "alertdialog"})
_GROUPS = frozenset({"group", "radiogroup"})


class _Place(NamedTuple):
    """Where a node stands in a text: how deep, and inside which name."""

    depth: int = 0
    around: str = ""


class _Around(NamedTuple):
    """What a node lies in."""

    in_dialog: bool = False
    group: str = ""

    def inside(self, role: str, name: str) -> _Around:
        """Return what its children lie in."""
        return _Around(self.in_dialog or role in _DIALOGS, name if role in _GROUPS else self.group)


def read(nodes: Sequence[Node], marks: Mapping[int, Mark]) -> AccessibilityTree:
    """Return everything that the nodes tell, in one walk. ``marks`` maps ``backendDOMNodeId`` to
    the element's mark.

    Pruned keeps what can be acted on and what has words: no nameless container (its children
    move up), no text that repeats the name of the element around it.
    """
    full, pruned, found = [], [], []
    focused = None
    for node, places, around in _walk(nodes):
        mark = marks.get(node.get("backendDOMNodeId", -1))
        role, name = _value(node, "role"), _name(node)
        line = _line(node, role, name, mark)
        full.append("\t" * places[0].depth + line)
        if _kept(role, name, places[1].around):
            pruned.append("\t" * places[1].depth + line)
        if mark and role in _INTERACTIVE:
            found.append(Element(mark.bid, role, name, _state(node), *around))
        if mark and role != "RootWebArea" and _property(node, "focused"):
            focused = mark.bid
    return AccessibilityTree("\n".join(full), "\n".join(pruned), found, focused)


def _walk(nodes: Sequence[Node]) -> Iterator[tuple[Node, tuple[_Place, _Place], _Around]]:
    """Yield the nodes that the full text shows, with their places in the full and the pruned text
    and what they lie in; a node that is not shown lends its place."""
    by_id = {node["nodeId"]: node for node in nodes}
    seen: set[str] = set()
    nowhere = (_Place(), _Place())
    pending: list[tuple[Node, tuple[_Place, _Place], _Around]] = []
    if nodes:
        pending.append((nodes[0], nowhere, _Around()))
    while pending:
        node, places, around = pending.pop()
        if node["nodeId"] in seen:  # a malformed tree must not hang the recorder
            continue
        seen.add(node["nodeId"])
        role, name = _value(node, "role"), _name(node)
        below, inside = places, around
        if _shown(node, role, name):
            yield node, places, around
            kept = _kept(role, name, places[1].around)
            below = (
                _Place(places[0].depth + 1),
                _Place(places[1].depth + 1, name) if kept else places[1],
            )
            inside = around.inside(role, name)
        children = [by_id[child] for child in node.get("childIds", ()) if child in by_id]
        pending.extend((child, below, inside) for child in reversed(children))


def _shown(node: Node, role: str, name: str) -> bool:
    if node.get("ignored") or role in _NEVER_SHOWN:
        return False
    return role == "RootWebArea" or bool(name) or role not in ("StaticText", "generic")


def _kept(role: str, name: str, around: str) -> bool:
    """Tell whether what the full text shows is also in the pruned one."""
    if role == "StaticText":
        return name not in around
    return role == "RootWebArea" or bool(name) or role in _INTERACTIVE


def _state(node: Node) -> str:
    for value in (_value(node, "value"), _property(node, "checked"), _property(node, "selected")):
        if value not in (None, ""):
            return str(value).lower() if isinstance(value, bool) else str(value)
    return ""


def _property(node: Node, wanted: str) -> Any:
    for entry in node.get("properties", ()):
        if entry["name"] == wanted:
            return entry["value"].get("value")
    return None


def _line(node: Node, role: str, name: str, mark: Mark | None) -> str:
    label = f"{role} {name!r}"
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
