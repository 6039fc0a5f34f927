"""A tree as lines that a template writes: folded by nesting, or as a difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trajudge.app.trajectories.tree_difference import DifferenceLine, tree_difference
from trajudge.app.trajectories.trees import ParsedTree, TreeNode, parse_tree

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
        tuple(_blocks(lines)),
        added=kinds.count("added"),
        removed=kinds.count("removed"),
        changed=kinds.count("changed"),
        same=kinds.count("same"),
    )


def _blocks(lines: list[DifferenceLine]) -> Iterator[DifferenceBlock]:
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
