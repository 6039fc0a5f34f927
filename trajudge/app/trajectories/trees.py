"""Accessibility trees as text: their nodes, by which one page can be told from the next.

A line is ``[12] button 'Pay', clickable, visible``, indented by its depth, as BrowserGym writes it
and, with other properties, WebArena. Ids are given anew on every page, so they are no part of what
a node is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MAX_LINES = 20_000
"""Lines of one tree that are read; what follows is said to be left out."""
MAX_DEPTH = 60

_NODE = re.compile(
    r"""(?:\[(?P<bid>[^\]\s]{1,60})\]\s)?(?P<role>[A-Za-z][\w-]{0,60})
    (?:\s(?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))?(?=$|[\s,])(?P<rest>.*)""",
    re.VERBOSE | re.DOTALL,
)
_BOX = re.compile(r'\b(box|center)="?\((-?[\d.,\s-]{1,80})\)')


@dataclass(eq=False)
class TreeNode:
    """``text`` is the line without its indent and id; ``properties`` what follows the name.
    ``line`` counts from 0."""

    line: int
    depth: int
    bid: str | None
    role: str
    name: str
    properties: str
    text: str
    children: list[TreeNode] = field(default_factory=list)

    def walk(self) -> Iterator[TreeNode]:
        """Yield the node and all below it, in the order of their lines."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


@dataclass(eq=False)
class ParsedTree:
    """``roots`` stand at the left margin; ``left_out`` lines were too many to be read."""

    roots: list[TreeNode]
    left_out: int = 0

    def nodes(self) -> Iterator[TreeNode]:
        """Yield all nodes in the order of their lines."""
        for root in self.roots:
            yield from root.walk()

    def with_id(self, bid: str) -> TreeNode | None:
        """Return the node with this id; None if the page has none."""
        return next((node for node in self.nodes() if node.bid == bid), None)


def parse_tree(text: str) -> ParsedTree:
    """Parse the tree. A line that is no node (a tab's title, text on several lines) is one whose
    role is all of it; no text is refused."""
    lines = text.splitlines()
    roots: list[TreeNode] = []
    above: list[tuple[int, TreeNode]] = []
    for number, line in enumerate(lines[:MAX_LINES]):
        content = line.lstrip(" \t")
        if not content:
            continue
        indent = len(line) - len(content)
        while above and above[-1][0] >= indent:
            above.pop()
        node = _node(number, len(above), content)
        siblings = above[-1][1].children if above else roots
        siblings.append(node)
        if len(above) < MAX_DEPTH:
            above.append((indent, node))
    return ParsedTree(roots, max(0, len(lines) - MAX_LINES))


def _node(number: int, depth: int, content: str) -> TreeNode:
    match = _NODE.fullmatch(content)
    if match is None:
        return TreeNode(number, depth, None, content, "", "", content)
    text = content[match.start("role") :]
    name = (match["name"] or "")[1:-1]
    return TreeNode(number, depth, match["bid"], match["role"], name, match["rest"], text)


def place_of(node: TreeNode) -> tuple[float, ...] | None:
    """Return where the node was on the screenshot, if its line says so: ``(x, y)`` of its centre,
    or ``(left, top, right, bottom)``, in pixels."""
    match = _BOX.search(node.properties)
    if match is None:
        return None
    try:
        numbers = tuple(float(part) for part in match[2].split(","))
    except ValueError:
        return None
    return numbers if len(numbers) == (2 if match[1] == "center" else 4) else None


def signatures(roots: Sequence[TreeNode], known: dict[tuple[object, ...], int]) -> dict[int, int]:
    """Give every subtree a number by what it holds, ids aside: equal ones have the same. Keys are
    ``id(node)``; ``known`` is shared by the trees that are compared."""
    numbers: dict[int, int] = {}
    for root in roots:
        for node in reversed([*root.walk()]):
            below = tuple(numbers[id(child)] for child in node.children)
            content = (node.role, node.name, node.properties, below)
            numbers[id(node)] = known.setdefault(content, len(known))
    return numbers
