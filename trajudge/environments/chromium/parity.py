"""The tree's text line by line as browsergym-core 0.14.3 writes it, for ``mark="browsergym"``.

Measured against the package (text frames inside lines ignored, as newer Chromium needs). Where it
differs from ``axtree``: every property in the browser's order, addresses among them;
the markers of lists; no text that repeats the name of the element around it; parts of a native
control carry the control's bid; clickable is only what listens to the mouse; visible is what
shows at least half of its box. What remains: the package also sees what is clipped, and under the
switches of its older Playwright Chromium keeps some texts of labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajudge.environments.chromium.axtree import AxNode, AxValue, Mark

_BID = re.compile(r"browsergym_id_(\S+) ?")
_UNSEEN_ROLES = frozenset({"LineBreak", "InlineTextBox"})
_UNSEEN = frozenset(
    {"editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"}
)
_FLAGS = frozenset({"required", "focused", "atomic"})


def browsergym_text(nodes: Sequence[AxNode], marks: Mapping[int, Mark]) -> str:
    """Return the full tree of a page that carries BrowserGym's attributes."""
    by_bid = {mark.bid: mark for mark in marks.values()}
    by_id = {node.node_id: node for node in nodes}
    lines: list[str] = []
    seen: set[str] = set()
    pending: list[tuple[AxNode, int, str]] = [(nodes[0], 0, "")] if nodes else []
    while pending:
        node, depth, around = pending.pop()
        if node.node_id in seen:
            continue
        seen.add(node.node_id)
        line = _line(node, around, by_bid)
        if line is not None:
            lines.append("\t" * depth + line)
        below = (depth + (line is not None), str(_value(node.name) or ""))
        children = [by_id[child] for child in node.child_ids if child in by_id]
        pending.extend((child, *below) for child in reversed(children))
    return "\n".join(lines)


def _line(node: AxNode, around: str, by_bid: Mapping[str, Mark]) -> str | None:
    role = _value(node.role)
    if role in _UNSEEN_ROLES or node.name is None:
        return None
    name = str(_value(node.name) or "")
    traits = list(_traits(node))
    if (role == "generic" and not traits) or (role == "StaticText" and name in around):
        return None
    label = role if role == "generic" and not name else f"{role} {name.strip()!r}"
    if mark := by_bid.get(_bid(node) or ""):
        label = f"[{mark.bid}] {label}"
        traits[:0] = [trait for trait in ("clickable", "visible") if getattr(mark, trait)]
    value = _value(node.value)
    if value is not None:
        label += f" value={value!r}"
    return ", ".join([label, *traits])


def _bid(node: AxNode) -> str | None:
    """Return the bid that came with the texts for assistive technology."""
    texts = [_value(node.description), *(value for _, value in _properties(node))]
    matches = (_BID.match(text) for text in texts if isinstance(text, str))
    return next((match[1] for match in matches if match), None)


def _traits(node: AxNode) -> Iterator[str]:
    for name, value in _properties(node):
        carried = _BID.match(value) if isinstance(value, str) else None
        if carried and carried.end() == len(value):
            continue
        if name in _FLAGS:
            if value:
                yield name
        elif name not in _UNSEEN:
            yield f"{name}={value[carried.end() :] if carried else value!r}"


def _properties(node: AxNode) -> Iterator[tuple[str, Any]]:
    for entry in node.properties:
        if entry.value.value is not None:
            yield entry.name, entry.value.value


def _value(part: AxValue | None) -> Any:
    return part and part.value
