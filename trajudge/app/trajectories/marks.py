"""Where an action hit the page: marks over the screenshot, or in words why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trajudge.app.trajectories.actions import ActionParts, action_parts
from trajudge.app.trajectories.images import KnownImage
from trajudge.app.trajectories.overview import tree_line
from trajudge.app.trajectories.trees import parse_tree, place_of
from trajudge.trajectories.model import Step


class ScreenMark(NamedTuple):
    """A point (``width`` and ``height`` 0) or a box, in pixels of the screenshot from its left and
    top; ``label`` is the typed text."""

    x: float
    y: float
    width: float = 0
    height: float = 0
    label: str = ""


class ScreenMarks(NamedTuple):
    """What is drawn, and ``sentences`` about what cannot be."""

    marks: tuple[ScreenMark, ...]
    sentences: tuple[str, ...]


def marks_of(step: Step, image: KnownImage | None) -> ScreenMarks:
    """Place the targets of a step's action on its screenshot."""
    marks: list[ScreenMark] = []
    sentences: list[str] = []
    for parts in action_parts(step.action):
        place = _place(parts, step, sentences)
        if place is None:
            continue
        mark = _mark(place, parts.typed or "")
        if image is None:
            sentences.append(f"The action was at ({mark.x:g}, {mark.y:g}).")
        elif _is_inside(mark, image):
            marks.append(mark)
        else:
            sentences.append(
                f"The action was at ({mark.x:g}, {mark.y:g}), outside of the screenshot of "
                f"{image.width} × {image.height} pixels."
            )
    return ScreenMarks(tuple(marks), tuple(dict.fromkeys(sentences)))


def _place(parts: ActionParts, step: Step, sentences: list[str]) -> tuple[float, ...] | None:
    if parts.point is not None:
        return parts.point
    if parts.target is None:
        return None
    trees = [tree for tree in (step.observation.axtree, step.observation.axtree_pruned) if tree]
    for tree in trees:
        node = parse_tree(tree).with_id(parts.target)
        place = node and place_of(node)
        if place:
            return place
    line = tree_line(step.observation, parts.target)
    sentences.append(next(_why_no_place(parts.target, line, bool(trees))))
    return None


def _why_no_place(target: str, line: str, has_tree: bool) -> Iterator[str]:
    if line:
        yield f"Element {target} is {line}; where it was on the screen is not recorded."
    if has_tree:
        yield f"Element {target} is not in the recorded tree of this step."
    yield f"Element {target} was acted on; no tree of this step is recorded that would tell it."


def _mark(place: tuple[float, ...], label: str) -> ScreenMark:
    if len(place) == 2:
        return ScreenMark(place[0], place[1], label=label)
    left, top, right, bottom = place
    return ScreenMark(left, top, max(0, right - left), max(0, bottom - top), label)


def _is_inside(mark: ScreenMark, image: KnownImage) -> bool:
    right, bottom = mark.x + mark.width, mark.y + mark.height
    return right >= 0 and bottom >= 0 and mark.x <= image.width and mark.y <= image.height
