"""Accessibility trees as text: one line a node, children indented by a tab."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from trajudge.trajectories.model import Observation, Step

NODE = re.compile(
    r"(?P<indent>[\t ]*)(?:\[(?P<bid>[^\]\s]+)\] )?(?P<role>[A-Za-z][\w-]*) (?P<rest>.*)"
)
_TARGET = re.compile(
    r"^(?:click|dblclick|hover|fill|select_option|press|check|uncheck|clear|focus)"
    r"\(\s*(?:bid\s*=\s*)?['\"]([^'\"]+)['\"]"
)
_BID = re.compile(r"^([\t ]*)\[([^\]\s]+)\]", re.MULTILINE)
_ROOT = re.compile(r"^(RootWebArea )('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")


def quoted(text: str) -> str:
    """Write a name as the tree does, on one line; characters that are not shown stay."""
    line = " ".join(text.split("\n")).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{line}'"


def bids(tree: str) -> list[str]:
    """List the ids of a tree's elements."""
    return [match[2] for match in _BID.finditer(tree)]


def fresh_bid(tree: str) -> str:
    """Return an id that no element has."""
    return str(1 + max((int(bid) for bid in bids(tree) if bid.isdigit()), default=0))


def appended(tree: str, *lines: str) -> str:
    """Put nodes at the end of the page; ``{bid}`` in a line becomes an id that is free."""
    bid = fresh_bid(tree)
    return "\n".join([tree.rstrip("\n"), *(f"\t{line.replace('{bid}', bid)}" for line in lines)])


def retitled(tree: str, text: str) -> str:
    """Put ``text`` behind the page's title."""
    return _ROOT.sub(lambda m: f"{m[1]}{quoted(m[2][1:-1] + ' - ' + text)}", tree, count=1)


def renumbered(tree: str, names: Mapping[str, str]) -> str:
    """Give elements other ids."""
    return _BID.sub(lambda m: f"{m[1]}[{names.get(m[2], m[2])}]", tree)


def each_tree(change: Callable[[str], str]) -> Callable[[Observation], Observation]:
    """Return what changes the full and the pruned tree of an observation alike."""

    def changed(page: Observation) -> Observation:
        update = {
            name: change(tree)
            for name in ("axtree", "axtree_pruned")
            if (tree := getattr(page, name))
        }
        return page.model_copy(update=update)

    return changed


def unparsable(tree: str) -> list[str]:
    """List the lines that are no node, and nodes deeper than a child of the one before; blank
    lines pass. Depth is counted in the unit of the first indented line."""
    wrong, depth, unit = [], -1, 0
    for line in tree.splitlines():
        if not line.strip():
            continue
        match = NODE.fullmatch(line.rstrip())
        if match is None:
            wrong.append(line)
            continue
        indent = len(match["indent"])
        unit = unit or indent
        level = indent // unit if unit else 0
        if level > depth + 1 or (unit and indent % unit):
            wrong.append(line)
        depth = level
    return wrong


def target(step: Step) -> str | None:
    """Return the id of the element that a step acts on."""
    match = _TARGET.match(step.action or "")
    return match[1] if match else None


def resolves(step: Step, tree: str | None) -> bool:
    """Tell whether the element that the step acts on is in the tree; where one of them is not
    known, it is."""
    name = target(step)
    if not tree or name is None:
        return True
    return re.search(rf"^[\t ]*\[{re.escape(name)}\]", tree, re.MULTILINE) is not None
