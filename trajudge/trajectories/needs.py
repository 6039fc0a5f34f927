"""The parts of a run that a judge needs, declared as data: only these are fetched, and a run in
which one cannot be read is not judged with less.

Goal, actions, reasoning and addresses are in every run and are not listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from pydantic import Field

from trajudge.trajectories.images import check_picture
from trajudge.trajectories.model import ImageRef, Record, Trajectory
from trajudge.trajectories.represent import Representation
from trajudge.util.errors import ImageUnreadable

T = TypeVar("T")
# fmt: off
Requirement = Literal[
    "final screenshot", "screenshot", "final tree", "tree", "every tree",
    "step", "action", "official reward",
]
# fmt: on


class Shown(Record):
    """A selection of the recorded screenshots (or trees) of a run: the ``final`` step's, the
    ``last`` ``count``, ``count`` of them ``spread`` evenly up to the final step's, or ``all``.

    A short run has fewer than ``count``; a run whose final step has none has no ``final`` and no
    ``spread`` one.
    """

    which: Literal["final", "last", "spread", "all"]
    count: int = Field(default=1, ge=1)

    def steps(self, recorded: Sequence[bool]) -> list[int]:
        """Return the selected steps, from 0; ``recorded`` has for each step whether it has one."""
        indices = [index for index, is_there in enumerate(recorded) if is_there]
        if self.which == "all":
            return indices
        if self.which == "last":
            return indices[-self.count :]
        if not (recorded and recorded[-1]):
            return []
        return indices[-1:] if self.which == "final" else spread(indices, self.count)

    def __str__(self) -> str:
        count = "" if self.which in ("final", "all") else f" {self.count}"
        return f"{self.which}{count}"


FINAL = (Shown(which="final"),)
ALL = (Shown(which="all"),)


def last(count: int) -> tuple[Shown, ...]:
    """Return the last ``count`` that are recorded."""
    return (Shown(which="last", count=count),)


class Needs(Record):
    """The parts of a run that a judge must see.

    ``screenshots`` and ``trees`` are unions of selections. A judgment is ``skipped`` if the data
    refer to a needed part that cannot be read. A part that was never recorded skips it only if it
    is in ``requires``; otherwise the judge uses the rest.
    """

    screenshots: tuple[Shown, ...] = ()
    trees: tuple[Shown, ...] = ()
    goal_images: bool = False
    answer: bool = False
    requires: tuple[Requirement, ...] = ()

    def screenshot_steps(self, recorded: Sequence[bool]) -> list[int]:
        """Return the steps, from 0, whose screenshot is needed; ``recorded`` has for each step
        whether it has one."""
        return sorted({step for shown in self.screenshots for step in shown.steps(recorded)})


NO_NEEDS = Needs()
NOT_READ = ImageRef(problem="the screenshot is not read: it was not asked for")
"""Stands where a picture was recorded that a caller of a loader does not need: nobody looked
whether it is there."""
EVERYTHING = Needs(screenshots=ALL, trees=ALL, goal_images=True, answer=True)


def union(needs: Iterable[Needs]) -> Needs:
    """Combine needs without requirements: a judge that combines others decides how to treat a
    member's missing part."""
    every = list(needs)
    return Needs(
        screenshots=_distinct(shown for each in every for shown in each.screenshots),
        trees=_distinct(shown for each in every for shown in each.trees),
        goal_images=any(each.goal_images for each in every),
        answer=any(each.answer for each in every),
    )


def page_needs(shown: Representation) -> Needs:
    """Return the needs of a judge that is shown the final page in this representation, and the
    answer; a run without it is skipped."""
    requires: list[Requirement] = ["final screenshot"] if shown.shows_screenshot else []
    requires += ["final tree"] if shown.shows_axtree else []
    return Needs(
        screenshots=FINAL if shown.shows_screenshot else (),
        trees=FINAL if shown.shows_axtree else (),
        answer=True,
        requires=tuple(requires),
    )


def spread(items: Sequence[T], count: int) -> list[T]:
    """Choose at most ``count`` items at even distances, always including the last and, for
    ``count`` above 1, the first."""
    if count == 1:
        return list(items[-1:])
    if count >= len(items):
        return list(items)
    return [items[round(position * (len(items) - 1) / (count - 1))] for position in range(count)]


def needed_pictures(trajectory: Trajectory, needs: Needs) -> list[tuple[str, ImageRef]]:
    """List each needed image with its position, without those that were never recorded."""
    if not needs.screenshots and not needs.goal_images:
        return []
    shots = [step.observation.screenshot for step in trajectory.steps]
    wanted = needs.screenshot_steps([shot is not None for shot in shots])
    pictures = [
        (f"screenshot of step {i + 1}", ref) for i in wanted if (ref := shots[i]) is not None
    ]
    if needs.goal_images:
        pictures += [("picture of the goal", ref) for ref in trajectory.goal_images]
    return pictures


def check_pictures(trajectory: Trajectory, needs: Needs) -> None:
    """Raise ImageUnreadable, with the image's position, if a needed one cannot be read
    completely."""
    for picture, ref in needed_pictures(trajectory, needs):
        try:
            check_picture(ref)
        except ImageUnreadable as error:
            raise ImageUnreadable(f"{trajectory.key}: {picture}: {error}") from error


def _distinct(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
