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

import msgspec

# The parts of the reply that are needed: msgspec skips the others.


class AxValue(msgspec.Struct, gc=False, frozen=True):
    """A value of the accessibility tree: a text, a number or a truth value."""

    value: Any = None


class AxProperty(msgspec.Struct, gc=False):
    """A property of a node, by name."""

    name: str
    value: AxValue = AxValue()


class AxNode(msgspec.Struct, gc=False, rename="camel"):
    """A node of the accessibility tree."""

    node_id: str
    ignored: bool = False
    role: AxValue | None = None
    name: AxValue | None = None
    description: AxValue | None = None
    value: AxValue | None = None
    properties: list[AxProperty] = []
    child_ids: list[str] = []
    backend_dom_node_id: int = msgspec.field(name="backendDOMNodeId", default=-1)


class AxTree(msgspec.Struct, gc=False):
    """The nodes, the root first."""

    nodes: list[AxNode]


class AxTreeReply(msgspec.Struct, gc=False):
    """The whole message."""

    result: AxTree


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
    | {"menuitemcheckbox", "menuitemradio", "DisclosureTriangle", "DisclosureTriangleGrouped"}
    | {"Date", "DateTime", "InputTime", "ColorWell"}  # Chromium's own, for native inputs
)


_DIALOGS = frozenset({"dialog", "alertdialog"})
_GROUPS = frozenset({"group", "radiogroup"})


class Within(NamedTuple):
    """Where a node stands: how deep in the full and in the pruned text, inside which name of the
    pruned one, in a dialog or not, in the group of which name."""

    full: int = 0
    pruned: int = 0
    around: str = ""
    in_dialog: bool = False
    group: str = ""


class TreeWriter:
    """Writes nodes, in document order, as text; both engines write their trees with it."""

    def __init__(self) -> None:
        self._full: list[str] = []
        self._pruned: list[str] = []
        self._elements: list[Element] = []
        self.focused: str | None = None

    def add(
        self, within: Within, role: str, name: str, more: str = "", *, bid: str = "",
        state: str = "", focused: bool = False,
    ) -> Within:  # fmt: skip
        """Add a node and return where its children stand. ``more`` is the rest of its line,
        ``bid`` its mark, if it carries one, ``state`` its value for ``Element``."""
        line = f"[{bid}] {role} {name!r}{more}" if bid else f"{role} {name!r}{more}"
        full, pruned, around, in_dialog, group = within
        acts = role in _INTERACTIVE
        if role == "StaticText":
            kept = name not in around
        else:
            kept = bool(name) or acts or role == "RootWebArea"
        self._full.append("\t" * full + line)
        if kept:
            self._pruned.append("\t" * pruned + line)
        if bid:
            if acts:
                self._elements.append(Element(bid, role, name, state, in_dialog, group))
            if focused:
                self.focused = bid
        return Within(
            full + 1,
            pruned + kept,
            name if kept else around,
            in_dialog or role in _DIALOGS,
            name if role in _GROUPS else group,
        )

    def worded(
        self, within: Within, role: str, name: str, text: str, *, more: str, bid: str
    ) -> None:
        """Add a node with a mark and one piece of text inside."""
        full, pruned, around, in_dialog, group = within
        line = f"[{bid}] {role} {name!r}{more}"
        words = f"\tStaticText {text!r}"
        indent = "\t" * full
        self._full += (indent + line, indent + words)
        indent = "\t" * pruned
        if name or role in _INTERACTIVE:
            self._pruned.append(indent + line)
            if text not in name:
                self._pruned.append(indent + words)
            if role in _INTERACTIVE:
                self._elements.append(Element(bid, role, name, "", in_dialog, group))
        elif text not in around:
            self._pruned.append(indent + words[1:])

    def text(self, within: Within, text: str) -> None:
        """Add a piece of text."""
        line = f"StaticText {text!r}"
        self._full.append("\t" * within.full + line)
        if text not in within.around:
            self._pruned.append("\t" * within.pruned + line)

    def tree(self) -> AccessibilityTree:
        """Return what was written."""
        full, pruned = "\n".join(self._full), "\n".join(self._pruned)
        return AccessibilityTree(full, pruned, self._elements, self.focused)


def read(nodes: Sequence[AxNode], marks: Mapping[int, Mark]) -> AccessibilityTree:
    """Return everything that the nodes tell, in one walk. ``marks`` maps ``backendDOMNodeId`` to
    the element's mark.

    Pruned keeps what can be acted on and what has words: no nameless container (its children
    move up), no text that repeats the name of the element around it.
    """
    by_id = {node.node_id: node for node in nodes}
    pending = [(node, Within()) for node in nodes[:1]]
    writer = TreeWriter()
    while pending:
        node, within = pending.pop()
        # A malformed tree must not hang the recorder: every node is walked once.
        if by_id.pop(node.node_id, None) is None:
            continue
        role, name = _text(node.role), _text(node.name).strip()
        if _shown(node, role, name):  # a node that is not shown lends its place to its children
            mark = marks.get(node.backend_dom_node_id)
            focused = role != "RootWebArea" and bool(_property(node, "focused"))
            within = writer.add(
                within,
                role,
                name,
                _rest(node, mark),
                bid=mark.bid if mark else "",
                state=_state(node),
                focused=focused,
            )
        for child in reversed(node.child_ids):
            if (below := by_id.get(child)) is not None:
                pending.append((below, within))
    return writer.tree()


def _shown(node: AxNode, role: str, name: str) -> bool:
    if node.ignored or role in _NEVER_SHOWN:
        return False
    return role == "RootWebArea" or bool(name) or role not in ("StaticText", "generic")


def _state(node: AxNode) -> str:
    stated = node.value and node.value.value
    for value in (stated, _property(node, "checked"), _property(node, "selected")):
        if value not in (None, ""):
            return str(value).lower() if isinstance(value, bool) else str(value)
    return ""


def _property(node: AxNode, wanted: str) -> Any:
    for entry in node.properties:
        if entry.name == wanted:
            return entry.value.value
    return None


def _rest(node: AxNode, mark: Mark | None) -> str:
    """Return what follows the name in the line of a node."""
    line = ""
    if node.value is not None and node.value.value not in (None, ""):
        line = f" value={node.value.value!r}"
    if mark is not None:
        if mark.clickable:
            line += ", clickable"
        if mark.visible:
            line += ", visible"
    if node.properties:
        line = ", ".join([line, *_properties(node)])
    return line


def _properties(node: AxNode) -> Iterator[str]:
    for entry in sorted(node.properties, key=lambda entry: entry.name):
        name, value = entry.name, entry.value.value
        if name in _FLAGS and value:
            yield name
        elif name in _VALUED and value is not None:
            yield f"{name}={value!r}"


def _text(part: AxValue | None) -> str:
    return str(part.value or "") if part is not None else ""
