"""What changed from one accessibility tree to the next.

A node is known by its role, its name and the nodes above it, never by its id. Subtrees that are
equal are matched first, then nodes of one role and name under matched parents, then, where only
the name of a container changed (the title of the page), containers of one role. What remains was
added or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from trajudge.app.trajectories.trees import ParsedTree, TreeNode, signatures

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
