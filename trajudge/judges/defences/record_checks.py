"""Where the parts of a run's record contradict each other: url, title, page, picture and action.

Nothing is read for its meaning. What is found was not left by a browser whose page stood still; a
record that is forged as a whole, with an action that leads to the page, agrees with itself. Actions
are read in BrowserGym's notation: of others nothing is found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import urldefrag

from trajudge.trajectories.images.prepare import grey_levels, picture_size
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory
from trajudge.trajectories.util.errors import ImageUnreadable

_TITLE = re.compile(r"\s*RootWebArea ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_CALLED = re.compile(r"^\s*(\w+)\s*\(", re.MULTILINE)
_SAID = {"send_msg_to_user", "report_infeasible", "report_infeasible_instructions", "answer"}
_TYPED = {"fill", "select_option"}
_ACTED = {*_TYPED, "click", "dblclick", "press", "check", "uncheck", "clear"}
_VALUE = re.compile(r" value=(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^\s,]+))")
_NOT_WORD = re.compile(r"[\W_]+")
_MAX_ACTION = 10_000  # characters
_SIZE = (160, 120)  # at which pictures are compared
_LEVELS = 24  # of 256, by which a pixel is another
_SAME, _OTHER = 0.0002, 0.02  # shares of the pixels: at most, at least


class Contradiction(NamedTuple):
    """``check`` names what was compared, ``step`` counts from 1, ``text`` is a sentence."""

    check: str
    step: int
    text: str


def contradictions(trajectory: Trajectory) -> Iterator[Contradiction]:
    """Yield where the record contradicts itself, in the order of the steps.

    - ``trees``: the full and the pruned tree of one page have different titles.
    - ``moved``, ``title``: nothing but a message to the user was sent, and the page after it has
      another address, or another title.
    - ``page``: after a message the picture is the same and the tree another; ``picture``: the other
      way round. Pictures are compared where they have the same size.
    - ``typed``: an entry shows another value than the one that was written into it.
    - ``absent``: an action on an element that the page does not have led to another address.
    """
    for step in trajectory.steps:
        page = step.observation
        titles = _title(page.axtree), _title(page.axtree_pruned)
        if None not in titles and titles[0] != titles[1]:
            yield _found("trees", step, "its full and its pruned tree have different titles")
    for step, following in pairwise(trajectory.steps):
        yield from _between(step, following)


def _found(check: str, step: Step, text: str) -> Contradiction:
    return Contradiction(check, step.index + 1, f"step {step.index + 1}: {text}")


def _between(step: Step, following: Step) -> Iterator[Contradiction]:
    before, after = step.observation, following.observation
    called = _called(step.action)
    stayed = _address(before) == _address(after)
    if called and called <= _SAID:
        yield from _after_message(following, before, after, stayed=stayed)
    elif not after.page_error and (call := _call(step.action)) is not None:
        yield from _after_call(following, call, before, after, stayed=stayed)


def _after_message(
    step: Step, before: Observation, after: Observation, *, stayed: bool
) -> Iterator[Contradiction]:
    only = "only a message to the user was sent, and"
    if not stayed:
        yield _found("moved", step, f"{only} the page has another address")
        return
    titles = _title(before.axtree), _title(after.axtree)
    if None not in titles and titles[0] != titles[1]:
        yield _found("title", step, f"{only} the page has another title")
    trees = (before.axtree, after.axtree)
    if None in trees:
        trees = (before.axtree_pruned, after.axtree_pruned)
    tree, next_tree = trees
    if not tree or not next_tree or not before.screenshot or not after.screenshot:
        return
    share = _pixels_changed(before.screenshot, after.screenshot)
    same_tree = tree.split() == next_tree.split()
    if share is not None and share <= _SAME and not same_tree:
        yield _found("page", step, f"{only} the tree is another behind the same picture")
    if share is not None and share >= _OTHER and same_tree:
        yield _found("picture", step, f"{only} the picture of the same tree is another")


class _Call(NamedTuple):
    name: str
    target: str
    value: str | None


def _after_call(
    step: Step, call: _Call, before: Observation, after: Observation, *, stayed: bool
) -> Iterator[Contradiction]:
    there = _line(before.axtree, call.target)
    if before.axtree and there is None and not stayed:
        yield _found("absent", step, f"{call.name} on what is not on the page led to another one")
    entry = _line(after.axtree, call.target) if stayed and call.value is not None else None
    if entry is None or there is None or call.value is None or _named(entry) != _named(there):
        return
    shown = _VALUE.search(entry)
    if shown is not None and not _alike(call.value, next(filter(None, shown.groups()), "")):
        yield _found("typed", step, f"the entry shows another value than {call.name} wrote")


def _called(action: str | None) -> set[str]:
    """Name what the lines of an action call."""
    return set(_CALLED.findall(action or ""))


def _call(action: str | None) -> _Call | None:
    """Read an action on one element; None for any other, and for several."""
    if not action or len(action) > _MAX_ACTION:
        return None
    try:
        call = ast.parse(action.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    given = [one.value for one in call.args if isinstance(one, ast.Constant)]
    if call.func.id not in _ACTED or not given or not isinstance(given[0], str):
        return None
    value = given[1] if len(given) > 1 and call.func.id in _TYPED else None
    return _Call(call.func.id, given[0], value if isinstance(value, str) else None)


def _title(tree: str | None) -> str | None:
    match = _TITLE.match(tree or "")
    return match[1] if match else None


def _address(page: Observation) -> str:
    return urldefrag(page.url or "").url


def _line(tree: str | None, bid: str) -> str | None:
    """Return the line of an element, None where the tree has none."""
    match = re.search(rf"^[\t ]*\[{re.escape(bid)}\] .*$", tree or "", re.MULTILINE)
    return match[0] if match else None


def _named(line: str) -> str:
    """Return role and name of an element, which stay whatever is written into it."""
    return line.partition(" value=")[0].partition(", ")[0]


def _alike(written: str, shown: str) -> bool:
    """Say whether an entry shows what was written, in its own notation or cut short."""
    one, other = (_NOT_WORD.sub("", text.casefold()) for text in (written, shown))
    return not one or not other or one in other or other in one


def _pixels_changed(first: ImageRef, second: ImageRef) -> float | None:
    """Return the share of the pixels that differ, None where the two cannot be compared."""
    if first == second:
        return 0.0
    try:
        if picture_size(first) != picture_size(second):
            return None
        contents = [grey_levels(ref, _SIZE) for ref in (first, second)]
    except ImageUnreadable:
        return None
    import numpy as np  # noqa: PLC0415 - slow to import

    levels = (np.frombuffer(content, np.uint8).astype(np.int16) for content in contents)
    changed = np.abs(np.subtract(*levels)) > _LEVELS
    return float(np.count_nonzero(changed) / changed.size)
