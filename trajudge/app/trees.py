"""Accessibility trees as text: parsed, folded by nesting, and what changed from one to the next.

A line is ``[12] button 'Pay', clickable, visible``, indented by its depth, as BrowserGym writes it
and, with other properties, WebArena. Ids are given anew on every page, so they are no part of what
a node is: a node is known by its role, its name and the nodes above it. Subtrees that are equal are
matched first, then nodes of one role and name under matched parents, then, where only the name of
a container changed (the title of the page), containers of one role. What remains was added or
removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

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
    left_out: int

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


Kind = Literal["same", "added", "removed", "changed"]

# Pairs of siblings that are compared; where there are more, all of them count as replaced.
_MAX_PAIRS = 1_000_000


class DifferenceLine(NamedTuple):
    """``text`` is the line as it is after, of a removed one as it was; ``before`` is the former
    text of a changed one."""

    kind: Kind
    depth: int
    bid: str | None
    text: str
    before: str = ""


class _Pair(NamedTuple):
    before: TreeNode | None
    after: TreeNode | None


Nodes = Sequence[TreeNode]


def tree_difference(before: ParsedTree, after: ParsedTree) -> list[DifferenceLine]:
    """Compare two trees; every line of both is in the result, those of ``after`` in their order."""
    known: dict[tuple[object, ...], int] = {}
    numbers = signatures(before.roots, known) | signatures(after.roots, known)
    return [*_compare(before.roots, after.roots, numbers)]


def _compare(before: Nodes, after: Nodes, numbers: dict[int, int]) -> Iterator[DifferenceLine]:
    for old, new in _paired(before, after, numbers):
        if old is None and new is not None:
            yield from (_line("added", node) for node in new.walk())
        elif new is None and old is not None:
            yield from (_line("removed", node) for node in old.walk())
        elif old is not None and new is not None:
            if numbers[id(old)] == numbers[id(new)]:
                yield from (_line("same", node) for node in new.walk())
                continue
            yield (
                _line("same", new)
                if old.text == new.text
                else DifferenceLine("changed", new.depth, new.bid, new.text, old.text)
            )
            yield from _compare(old.children, new.children, numbers)


def _line(kind: Kind, node: TreeNode) -> DifferenceLine:
    return DifferenceLine(kind, node.depth, node.bid, node.text)


def _paired(before: Nodes, after: Nodes, numbers: dict[int, int]) -> Iterator[_Pair]:
    """Pair the siblings: by content, then by role and name, then containers by role."""
    rules: tuple[Callable[[TreeNode], Hashable], ...] = (
        lambda node: numbers[id(node)],
        lambda node: (node.role, node.name),
        lambda node: node.role if node.children else id(node),
    )
    yield from _by_rules(before, after, rules)


def _by_rules(
    before: Nodes, after: Nodes, rules: Sequence[Callable[[TreeNode], Hashable]]
) -> Iterator[_Pair]:
    if not rules or not before or not after:
        yield from (_Pair(node, None) for node in before)
        yield from (_Pair(None, node) for node in after)
        return
    rule, *others = rules
    for old, new, equal in _blocks([rule(n) for n in before], [rule(n) for n in after]):
        if equal:
            yield from map(_Pair, before[old], after[new])
        else:
            yield from _by_rules(before[old], after[new], others)


def _blocks(
    before: Sequence[Hashable], after: Sequence[Hashable]
) -> Iterator[tuple[slice, slice, bool]]:
    """Yield runs that are equal and runs that are not, in order."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    tail = 0
    while tail < shorter - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    if start:
        yield slice(0, start), slice(0, start), True
    ends = len(before) - tail, len(after) - tail
    middle = before[start : ends[0]], after[start : ends[1]]
    if len(middle[0]) * len(middle[1]) > _MAX_PAIRS:
        yield slice(start, ends[0]), slice(start, ends[1]), False
    else:
        matcher = SequenceMatcher(None, *middle, autojunk=False)
        for tag, *places in matcher.get_opcodes():
            first, last, low, high = (start + place for place in places)
            yield slice(first, last), slice(low, high), tag == "equal"
    if tail:
        yield slice(ends[0], len(before)), slice(ends[1], len(after)), True


# Unchanged lines between two changes that are shown without folding.
_SHOWN_BETWEEN = 3


class TreeRow(NamedTuple):
    """A line: ``opens`` a fold that later lines are in, and ``closes`` so many folds behind it."""

    bid: str | None
    text: str
    is_target: bool
    is_match: bool
    opens: bool
    closes: int


class FoldedTree(NamedTuple):
    """``matches`` counts the lines that hold what was searched for; ``left_out`` those behind the
    first ``trees.MAX_LINES``."""

    rows: tuple[TreeRow, ...]
    matches: int
    left_out: int


class DifferenceBlock(NamedTuple):
    """Lines that follow each other; ``folded`` ones did not change and are far from a change."""

    folded: bool
    lines: tuple[DifferenceLine, ...]


class DifferenceView(NamedTuple):
    """The blocks in order, and how many lines are of each kind."""

    blocks: tuple[DifferenceBlock, ...]
    added: int
    removed: int
    changed: int
    same: int


def folded_tree(text: str, targets: frozenset[str], search: str) -> FoldedTree:
    """Lay a tree out in folds; mark the elements that were acted on and the lines that hold
    ``search`` (case aside)."""
    tree = parse_tree(text)
    rows = tuple(_rows(tree, targets, search.casefold()))
    return FoldedTree(rows, sum(row.is_match for row in rows), tree.left_out)


def _rows(tree: ParsedTree, targets: frozenset[str], search: str) -> Iterator[TreeRow]:
    nodes = [*tree.nodes()]
    depths = [*(node.depth for node in nodes[1:]), 0]
    for node, depth_after in zip(nodes, depths, strict=bool(nodes)):
        yield TreeRow(
            bid=node.bid,
            text=node.text,
            is_target=node.bid in targets,
            is_match=bool(search) and search in _searched(node),
            opens=bool(node.children),
            closes=max(0, node.depth - depth_after),
        )


def _searched(node: TreeNode) -> str:
    return f"[{node.bid}] {node.text}".casefold() if node.bid else node.text.casefold()


def difference_view(before: str, after: str) -> DifferenceView:
    """Compare two trees' texts, and fold what is far from every change."""
    lines = tree_difference(parse_tree(before), parse_tree(after))
    kinds = [line.kind for line in lines]
    return DifferenceView(
        tuple(_difference_blocks(lines)),
        added=kinds.count("added"),
        removed=kinds.count("removed"),
        changed=kinds.count("changed"),
        same=kinds.count("same"),
    )


def _difference_blocks(lines: list[DifferenceLine]) -> Iterator[DifferenceBlock]:
    changes = [at for at, line in enumerate(lines) if line.kind != "same"]
    near = {
        place
        for at in changes
        for place in range(at - _SHOWN_BETWEEN, at + _SHOWN_BETWEEN + 1)
        if 0 <= place < len(lines)
    }
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or (at in near) != (start in near):
            yield DifferenceBlock(start not in near, tuple(lines[start:at]))
            start = at
