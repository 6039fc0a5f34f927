"""The steps of a trajectory as its page lists them: what was done, to what, and what stands out."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from trajudge.app.trajectories.actions import ActionParts, action_parts
from trajudge.app.trajectories.images import ImageShelf, KnownImage
from trajudge.app.trajectories.trees import parse_tree
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import DataFolder

_IDS = re.compile(r"\[[^\]\s]{1,60}\] ")
_LINE = 300


class StepSummary(NamedTuple):
    """``number`` counts from 1, as prompts do. ``target`` names what the action was about, "" for
    none; ``same_as`` is the number of the first step that saw the same page, None if this is the
    first; ``image`` or why there is none (``no_image``, "" where none was recorded)."""

    number: int
    verb: str
    target: str
    has_error: bool
    same_as: int | None
    page_changed: bool
    image: KnownImage | None
    no_image: str


class GoalPicture(NamedTuple):
    """A picture of the goal, or why it cannot be shown (``no_image``)."""

    image: KnownImage | None
    no_image: str


def goal_pictures(
    trajectory: Trajectory, shelf: ImageShelf, root: DataFolder | None
) -> tuple[GoalPicture, ...]:
    """Make the pictures of the goal known, in their order."""
    return tuple(GoalPicture(*_image(ref, shelf, root)) for ref in trajectory.goal_images)


def summarise(
    trajectory: Trajectory, shelf: ImageShelf, root: DataFolder | None
) -> tuple[StepSummary, ...]:
    """Summarise every step, and make its screenshot known."""
    summaries: list[StepSummary] = []
    seen: dict[Hashable, int] = {}
    url = None
    for number, step in enumerate(trajectory.steps, start=1):
        image, no_image = _image(step.observation.screenshot, shelf, root)
        state = _state(step.observation, image)
        first = seen.setdefault(state, number) if state is not None else number
        verb, target = _action(step)
        changed = number > 1 and step.observation.url != url
        url = step.observation.url
        summaries.append(
            StepSummary(
                number=number,
                verb=verb,
                target=target,
                has_error=bool(step.observation.page_error),
                same_as=first if first != number else None,
                page_changed=changed,
                image=image,
                no_image=no_image,
            )
        )
    return tuple(summaries)


def _image(
    ref: ImageRef | None, shelf: ImageShelf, root: DataFolder | None
) -> tuple[KnownImage | None, str]:
    if ref is None:
        return None, ""
    try:
        return shelf.put(ref, root), ""
    except ImageUnreadable as error:
        return None, str(error)


def _state(observation: Observation, image: KnownImage | None) -> Hashable | None:
    """Return what tells the page from others, element ids aside; None where nothing was seen."""
    if tree := observation.axtree or observation.axtree_pruned:
        return observation.url, _IDS.sub("", tree)
    return (observation.url, image.sha256) if image else None


def _action(step: Step) -> tuple[str, str]:
    parts = action_parts(step.action)
    if not parts:
        return "", ""
    verb = parts[0].verb + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")
    return verb, _target(parts[0], step.observation)


def _target(parts: ActionParts, observation: Observation) -> str:
    if parts.target is not None:
        node = next(parse_tree(tree_line(observation, parts.target)).nodes(), None)
        return f"{node.role} {node.name}" if node else f"element {parts.target}"
    if parts.point is not None:
        return f"({parts.point[0]:g}, {parts.point[1]:g})"
    return parts.typed or ""


def tree_line(observation: Observation, bid: str) -> str:
    """Return the line of an element in the page's tree without its id, "" if it is not there."""
    for tree in (observation.axtree, observation.axtree_pruned):
        mark = f"[{bid}] "
        start = (tree or "").find(mark)
        while tree and start >= 0:
            if not tree[tree.rfind("\n", 0, start) + 1 : start].strip():
                return tree[start + len(mark) :].split("\n", 1)[0][:_LINE]
            start = tree.find(mark, start + 1)
    return ""


def neighbours(steps: Sequence[StepSummary], number: int) -> tuple[int | None, int | None]:
    """Return the numbers of the step before and the one after."""
    return number - 1 if number > 1 else None, number + 1 if number < len(steps) else None
