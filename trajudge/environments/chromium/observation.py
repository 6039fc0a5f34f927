"""What an agent sees of a page: the accessibility tree with bids, and a picture.

The bids are numbers in document order that the harness keeps beside the page, by the DevTools
protocol's node ids: ``mark="native"`` leaves no trace in the page. ``mark="browsergym"`` writes the
attributes by which BrowserGym carries its bids, which changes what Chromium takes into the tree;
it is for parity with data that were recorded so.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from typing import Any, Literal, NamedTuple

import msgspec
from PIL import Image

from trajudge.environments.chromium.axtree import AxNode, AxTreeReply, Mark
from trajudge.environments.chromium.protocol import ProtocolError, ProtocolSession

Box = tuple[float, float, float, float]  # left, top, width, height
MarkMode = Literal["native", "browsergym"]
Visible = Literal["window", "rendered", "off"]
"""What the tree calls visible: what is in the window, what has a box at all, wherever, or
nothing."""

FLAT_COLOURS = 24
OTHER_COLOURS = 8
PICTURES_TRIED = 4
NEXT_FRAME = 0.1  # seconds
_NO_FRAME = "Unable to capture screenshot"
_ELEMENT = 1
_NOWHERE = (-1.0, -1.0, 0.0, 0.0)
_EVERYWHERE = (-1e9, -1e9, 2e9, 2e9)
_CONTROLS = frozenset({"BUTTON", "INPUT", "SELECT", "TEXTAREA", "SUMMARY", "LABEL"})

# ARIA texts reach the tree, so BrowserGym writes the bid before them and takes it away again.
_WRITE = """(() => {
  let next = window.browsergymNext ?? 0;
  for (const element of document.querySelectorAll(":not(svg *)")) {
    if (!element.hasAttribute("bid")) element.setAttribute("bid", String(next++));
    for (const name of ["aria-roledescription", "aria-description"])
      element.setAttribute(name,
        `browsergym_id_${element.getAttribute("bid")} ${element.getAttribute(name) ?? ""}`);
  }
  window.browsergymNext = next;
})()"""
_ERASE = """(() => {
  for (const element of document.querySelectorAll("*"))
    for (const name of ["aria-roledescription", "aria-description"]) {
      const text = (element.getAttribute(name) ?? "").replace(/^browsergym_id_\\S+ /, "");
      if (text) element.setAttribute(name, text); else element.removeAttribute(name);
    }
})()"""


# The parts of ``DOMSnapshot.captureSnapshot`` that are needed, by the protocol's names in snake
# case: msgspec skips the others.


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


class PageDetails(NamedTuple):
    """What BrowserGym's observation holds beyond the tree: the document as ``DOMSnapshot`` writes
    it, with bids as attributes and without hidden fields, and by bid ``visibility`` (share of the
    box that shows), ``bbox`` (left, top, width, height; None without a layout), ``clickable`` and
    ``set_of_marks``."""

    dom: dict[str, Any]
    elements: dict[str, dict[str, Any]]


class PageSnapshot(NamedTuple):
    """A page as the browser reports it: nodes of the tree, marks by node id, the picture with few
    colours, the document with its boxes, and the part of it that is shown."""

    url: str
    title: str
    nodes: list[AxNode]
    marks: dict[int, Mark]
    png: bytes | None
    drawn: DomSnapshot
    window: Box

    def details(self) -> PageDetails:
        """Return what BrowserGym's observation holds beyond the tree."""
        document, strings = self.drawn.documents[0], [*self.drawn.strings, "bid"]
        nodes, hidden = document.nodes, set[int]()
        attributes: list[list[int]] = []
        elements: dict[str, dict[str, Any]] = {}
        boxes = dict(zip(document.layout.node_index, document.layout.bounds, strict=True))
        attribute = len(strings) - 1
        for index, pairs in enumerate(nodes.attributes):
            texts = [_string(strings, part).lower() for part in pairs]
            concealed = ("type", "hidden") in zip(texts[::2], texts[1::2], strict=True)
            if concealed or nodes.parent_index[index] in hidden:
                hidden.add(index)
            mark = self.marks.get(nodes.backend_node_id[index])
            if mark is None:
                attributes.append([*pairs])
                continue
            attributes.append([*pairs, attribute, len(strings)])
            strings.append(mark.bid)
            box = boxes.get(index)
            share = _share(box, self.window) if box and box[2] and box[3] else 0.0
            elements[mark.bid] = {
                "visibility": share,
                "bbox": [box[0] - self.window[0], box[1] - self.window[1], *box[2:]]
                if box and self.window != _EVERYWHERE
                else box and [*box],
                "clickable": mark.clickable,
                "set_of_marks": mark.clickable and share >= 0.5,
            }
        kept = [index for index in range(len(attributes)) if index not in hidden]
        numbers = {-1: -1} | {index: number for number, index in enumerate(kept)}
        dom = {
            "nodeName": [nodes.node_name[index] for index in kept],
            "nodeType": [nodes.node_type[index] for index in kept],
            "nodeValue": [nodes.node_value[index] for index in kept],
            "parentIndex": [numbers[nodes.parent_index[index]] for index in kept],
            "attributes": [attributes[index] for index in kept],
            "contentDocumentIndex": {"index": [], "value": []},
        }
        return PageDetails({"documents": [{"nodes": dom}], "strings": strings}, elements)


class Bids:
    """The bids of a document's elements: given once, in document order, from 0."""

    def __init__(self) -> None:
        self._document: object = None
        self._by_node: dict[int, str] = {}
        self._nodes: dict[str, int] = {}

    def start(self, document: object) -> None:
        """Begin anew if this is another document than the last one."""
        if document != self._document:
            self._document = document
            self._by_node, self._nodes = {}, {}

    def of(self, node: int, written: str | None = None) -> str:
        """Return the bid of a node; ``written`` is the one that the page carries."""
        if node not in self._by_node:
            bid = written if written is not None else str(len(self._by_node))
            self._by_node[node] = bid
            self._nodes[bid] = node
        return self._by_node[node]

    def node(self, bid: str) -> int | None:
        """Return the node with this bid, as far as one was seen."""
        return self._nodes.get(bid)


async def snapshot(
    cdp: ProtocolSession, bids: Bids, mark: MarkMode, visible: Visible, *, pictures: bool
) -> PageSnapshot:
    """See the page. The questions go out together, the picture's first: it is drawn and compressed
    while the tree is gathered.

    The tree is built for each look: one that ``Accessibility.enable`` keeps up to date differs with
    where the parser paused, so that one page has several trees."""
    written = mark == "browsergym"
    if written:
        await cdp.send("Runtime.evaluate", {"expression": _WRITE})
    png, tree, drawn, metrics = await asyncio.gather(
        _compressed_picture(cdp) if pictures else _no_picture(),
        cdp.send_typed("Accessibility.getFullAXTree", None, AxTreeReply),
        cdp.send_typed("DOMSnapshot.captureSnapshot", {"computedStyles": []}, DomSnapshotReply),
        cdp.send("Page.getLayoutMetrics"),
    )
    if written:
        await cdp.send("Runtime.evaluate", {"expression": _ERASE})
    document, strings = drawn.result.documents[0], drawn.result.strings
    view = metrics["cssLayoutViewport"]
    window = (view["pageX"], view["pageY"], view["clientWidth"], view["clientHeight"])
    if visible != "window":
        window = _EVERYWHERE
    marks = dict(_marks(document, strings, window, bids, written))
    if visible == "off":
        marks = {node: mark._replace(visible=False) for node, mark in marks.items()}
    url, title = _string(strings, document.url), _string(strings, document.title)
    return PageSnapshot(url, title, tree.result.nodes, marks, png, drawn.result, window)


async def picture(cdp: ProtocolSession) -> bytes:
    """Return the window. A busy machine now and then has no frame to show, a moment later it
    has."""
    options = {"format": "png", "optimizeForSpeed": True}
    for _ in range(PICTURES_TRIED - 1):
        try:
            return _decoded(await cdp.send("Page.captureScreenshot", options))
        except ProtocolError as error:
            if _NO_FRAME not in error.message:
                raise
            await asyncio.sleep(NEXT_FRAME)
    return _decoded(await cdp.send("Page.captureScreenshot", options))


async def _compressed_picture(cdp: ProtocolSession) -> bytes:
    return await asyncio.to_thread(compress_png, await picture(cdp))


def _decoded(shot: dict[str, Any]) -> bytes:
    return base64.b64decode(shot["data"])


async def _no_picture() -> None:
    return None


def _string(strings: list[str], index: int) -> str:
    return strings[index] if index >= 0 else ""


def _marks(
    document: DomDocument,
    strings: list[str],
    window: Box,
    bids: Bids,
    written: bool,
) -> Iterator[tuple[int, Mark]]:
    """(node id, mark) of every element of the document in document order."""
    nodes, layout = document.nodes, document.layout
    boxes = dict(zip(layout.node_index, layout.bounds, strict=True))
    listening = set(nodes.is_clickable.index)  # to the mouse, by a script or by itself
    carried = {} if not written else _carried(nodes.attributes, strings)
    for index in carried or _elements(nodes, strings):
        control = not written and strings[nodes.node_name[index]] in _CONTROLS
        node = nodes.backend_node_id[index]
        box = boxes.get(index, _NOWHERE)
        share = _share(box, window)
        seen = share >= 0.5 if written else share > 0 and bool(box[2] and box[3])
        yield node, Mark(bids.of(node, carried.get(index)), seen, control or index in listening)


def _elements(nodes: DomNodes, strings: list[str]) -> Iterator[int]:
    """Yield indices of the body's elements, without the inner parts of pictures and controls."""
    kinds, parents, shadows = nodes.node_type, nodes.parent_index, nodes.shadow_root_type
    names = [_string(strings, name) for name in nodes.node_name]
    drawn = set(nodes.pseudo_type.index)
    inner = {
        index
        for index, kind in zip(shadows.index, shadows.value, strict=True)
        if strings[kind] == "user-agent"
    }
    inside = [False] * len(kinds)  # of the body, where elements get bids
    for index, parent in enumerate(parents):
        if parent < 0:
            continue
        stops = index in drawn or index in inner or names[parent] == "svg"
        inside[index] = (inside[parent] or names[parent] == "BODY") and not stops
        if inside[index] and kinds[index] == _ELEMENT:
            yield index


def _carried(attributes: list[list[int]], strings: list[str]) -> dict[int, str]:
    """Return the bids that elements carry, by index of the node."""
    return {
        index: strings[value]
        for index, pairs in enumerate(attributes)
        for name, value in zip(pairs[::2], pairs[1::2], strict=True)
        if strings[name] == "bid"
    }


def _share(box: Box, window: Box) -> float:
    """Return how much of a box is inside the window, in [0, 1]; of an empty one, whether it is."""
    left, top, width, height = box
    x, y, wide, high = window
    across = min(left + width, x + wide) - max(left, x)
    down = min(top + height, y + high) - max(top, y)
    if across < 0 or down < 0:
        return 0.0
    return across * down / (width * height) if width and height else 1.0


@lru_cache(maxsize=64)  # many steps show the same page
def compress_png(png: bytes) -> bytes:
    """Return the same picture with few colours: flat pages stay legible at a fraction of the
    bytes."""
    with Image.open(BytesIO(png)) as picture:
        full = picture.convert("RGB")
    few = full.quantize(palette=_palette(full), dither=Image.Dither.NONE)
    out = BytesIO()
    few.save(out, "PNG", compress_level=6)
    return out.getvalue()


def _palette(picture: Image.Image) -> Image.Image:
    """Return the page's flat colours as they are, and a few more for what is left, from a sample of
    its pixels: reading all of them would cost more than the rest of a step's picture."""
    size = (max(1, picture.width // 3), max(1, picture.height // 3))
    sample = picture.resize(size, Image.Resampling.NEAREST)
    counts: Any = sample.getcolors(size[0] * size[1])
    flat = sorted(counts, key=lambda entry: (-entry[0], entry[1]))[:FLAT_COLOURS]
    others = sample.quantize(OTHER_COLOURS, method=Image.Quantize.MEDIANCUT)
    values = [part for _, colour in flat for part in colour]
    palette = Image.new("P", (1, 1))
    palette.putpalette(values + (others.getpalette() or [])[: 3 * OTHER_COLOURS])
    return palette
