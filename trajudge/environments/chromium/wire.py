"""The parts of Chromium's largest answers that an observation needs; msgspec skips the others.

The names are the DevTools protocol's (``Accessibility.getFullAXTree``,
``DOMSnapshot.captureSnapshot``) in snake case.
"""

from __future__ import annotations

from typing import Any

import msgspec


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


class SparseColumn(msgspec.Struct, gc=False):
    """Values of a few nodes, by their index."""

    index: list[int]
    value: list[int] = []


class DomNodes(msgspec.Struct, gc=False, rename="camel"):
    """The nodes of a document as columns, in document order; texts are indices of ``strings``."""

    parent_index: list[int]
    node_type: list[int]
    node_name: list[int]
    node_value: list[int]
    backend_node_id: list[int]
    attributes: list[list[int]]
    shadow_root_type: SparseColumn
    pseudo_type: SparseColumn
    is_clickable: SparseColumn


class DomLayout(msgspec.Struct, gc=False, rename="camel"):
    """Boxes (left, top, width, height), in CSS pixels of the document, of the nodes that have
    one."""

    node_index: list[int]
    bounds: list[tuple[float, float, float, float]]


class DomDocument(msgspec.Struct, gc=False):
    """A document and its boxes."""

    url: int = msgspec.field(name="documentURL")
    title: int
    nodes: DomNodes
    layout: DomLayout


class DomSnapshot(msgspec.Struct, gc=False):
    """All documents of a page, its own first."""

    documents: list[DomDocument]
    strings: list[str]


class DomSnapshotReply(msgspec.Struct, gc=False):
    """The whole message."""

    result: DomSnapshot
