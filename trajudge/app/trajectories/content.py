"""What the page of a trajectory shows of one step."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, NamedTuple

from trajudge.app.server.links import address
from trajudge.app.trajectories.actions import action_parts
from trajudge.app.trajectories.evidence_files import (
    ShownRequests,
    StateFact,
    network_trace,
    state_facts,
)
from trajudge.app.trajectories.images import ImageShelf
from trajudge.app.trajectories.library import MOST_OPEN, OpenedTrajectory
from trajudge.app.trajectories.marks import ScreenMarks, marks_of
from trajudge.app.trajectories.overview import (
    GoalPicture,
    StepSummary,
    goal_pictures,
    neighbours,
    summarise,
)
from trajudge.app.trajectories.pixels import PixelDifference, pixel_difference
from trajudge.app.trajectories.tree_view import (
    DifferenceView,
    FoldedTree,
    difference_view,
    folded_tree,
)
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey
from trajudge.util import jsonl as python_json

_RANGE = re.compile(r"(\d{1,6})-(\d{1,6})")
_LONGEST = 200
TABS = {
    "action": "Action & reasoning",
    "tree": "Accessibility tree",
    "answer": "Answer",
    "metadata": "Metadata",
    "network": "Network",
    "state": "State",
}


class StepRequest(NamedTuple):
    """What an address asks for. ``step`` counts from 1; ``after`` shows the page that the action
    led to; ``diff`` compares the tree with the step before; ``unseen`` are the first and the last
    step that a judge was not shown; ``run`` is the run whose data it is looked for in first.
    ``pixels`` compares the screenshot with that after the action; ``zoom`` shows it in its own
    size."""

    step: int = 1
    tab: str = "action"
    after: bool = False
    diff: bool = False
    search: str = ""
    unseen: tuple[int, int] | None = None
    run: str = ""
    pixels: bool = False
    zoom: bool = False


class TreeTab(NamedTuple):
    """The tree of the step (None: none was recorded), and its difference to the step before, or
    the ``sentence`` that says why there is none."""

    folded: FoldedTree | None
    difference: DifferenceView | None = None
    sentence: str = ""


class StepContent(NamedTuple):
    """``shown`` is the step whose screenshot is in the middle; ``step`` None where there is none;
    only the part of the chosen tab is read."""

    key: TrajectoryKey
    trajectory: Trajectory
    warnings: tuple[str, ...]
    steps: tuple[StepSummary, ...]
    request: StepRequest
    step: Step | None
    shown: StepSummary | None
    marks: ScreenMarks
    previous: int | None
    following: int | None
    tree: TreeTab | None
    network: ShownRequests | None
    facts: tuple[StateFact, ...]
    metadata: tuple[tuple[str, str], ...]
    link: Callable[..., str]
    pixels: PixelDifference | str | None = None
    goal_pictures: tuple[GoalPicture, ...] = ()


class Summaries:
    """The summaries of the trajectories that were looked at last; threads share it."""

    def __init__(self, shelf: ImageShelf) -> None:
        self._shelf = shelf
        self._made: OrderedDict[int, tuple[Trajectory, tuple[StepSummary, ...]]] = OrderedDict()
        self._lock = Lock()

    def of(self, opened: OpenedTrajectory) -> tuple[StepSummary, ...]:
        """Return the steps' summaries, their screenshots known to the shelf."""
        name = id(opened.trajectory)
        with self._lock:
            kept = self._made.get(name)
        if kept is not None and kept[0] is opened.trajectory:
            return kept[1]
        made = summarise(opened.trajectory, self._shelf, opened.root)
        with self._lock:
            self._made[name] = opened.trajectory, made
            while len(self._made) > MOST_OPEN:
                self._made.popitem(last=False)
        return made

    def content(self, opened: OpenedTrajectory, asked: StepRequest) -> StepContent:
        """Put together what one step's page shows."""
        content = step_content(opened, self.of(opened), asked)._replace(
            goal_pictures=goal_pictures(opened.trajectory, self._shelf, opened.root)
        )
        if not asked.pixels or content.following is None:
            return content
        before, after = content.steps[content.request.step - 1 : content.request.step + 1]
        if before.image is None or after.image is None:
            told = "The pictures cannot be compared: one of them is not there."
            return content._replace(pixels=told)
        return content._replace(pixels=pixel_difference(self._shelf, before.image, after.image))


def step_content(
    opened: OpenedTrajectory, steps: tuple[StepSummary, ...], asked: StepRequest
) -> StepContent:
    """Put together what one step's page shows; a step out of range is the nearest."""
    trajectory = opened.trajectory
    number = min(max(1, asked.step), len(steps))
    asked = asked._replace(step=number)
    step = trajectory.steps[number - 1] if steps else None
    previous, following = neighbours(steps, number) if steps else (None, None)
    shown = None
    if steps:
        shown = steps[number] if asked.after and following else steps[number - 1]
    is_before = shown is not None and shown.number == number
    marks = marks_of(step, shown.image) if step and shown and is_before else ScreenMarks((), ())
    is_state = asked.tab == "state" and opened.folder and opened.root
    is_network = asked.tab == "network" and opened.folder and opened.root
    folder, root = opened.folder, opened.root
    return StepContent(
        key=trajectory.key,
        trajectory=trajectory,
        warnings=_warnings(trajectory),
        steps=steps,
        request=asked,
        step=step,
        shown=shown,
        marks=marks,
        previous=previous,
        following=following,
        tree=_tree(trajectory, number, asked) if asked.tab == "tree" else None,
        network=network_trace(trajectory, folder, root) if is_network and folder and root else None,
        facts=state_facts(trajectory.key, folder, root) if is_state and folder and root else (),
        metadata=tuple(_metadata(trajectory)) if asked.tab == "metadata" else (),
        link=step_linker(("t", *trajectory.key.order), asked),
    )


def _warnings(trajectory: Trajectory) -> tuple[str, ...]:
    warnings = trajectory.metadata.get("warnings")
    return tuple(map(str, warnings)) if isinstance(warnings, list) else ()


def _tree(trajectory: Trajectory, number: int, asked: StepRequest) -> TreeTab:
    text = _text(trajectory, number)
    if text is None:
        return TreeTab(None)
    if not asked.diff:
        parts = action_parts(trajectory.steps[number - 1].action)
        targets = frozenset(part.target for part in parts if part.target is not None)
        return TreeTab(folded_tree(text, targets, asked.search))
    before = _text(trajectory, number - 1) if number > 1 else None
    if before is None:
        sentence = (
            "The first step has no step before it."
            if number == 1
            else "No tree of the step before is recorded."
        )
        return TreeTab(folded_tree(text, frozenset(), asked.search), sentence=sentence)
    return TreeTab(None, difference_view(before, text))


def _text(trajectory: Trajectory, number: int) -> str | None:
    if not 1 <= number <= len(trajectory.steps):
        return None
    seen = trajectory.steps[number - 1].observation
    return seen.axtree or seen.axtree_pruned or None


def _metadata(trajectory: Trajectory) -> Iterator[tuple[str, str]]:
    key = trajectory.key
    yield "benchmark", key.benchmark
    yield "agent", key.agent
    yield "task", trajectory.raw_task_id
    yield "attempt", str(key.attempt)
    reward = trajectory.official_reward
    yield "official reward", "none" if reward is None else f"{reward:g}"
    yield "terminated", _said(trajectory.terminated)
    yield "truncated", _said(trajectory.truncated)
    for name, number in trajectory.telemetry.items():
        yield name, f"{number:g}"
    for name, value in trajectory.metadata.items():
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            yield name, "\n".join(map(str, value)) or "none"
        else:
            yield name, value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return python_json.encode(value, default=str).decode()


def _said(value: bool | None) -> str:
    return "not recorded" if value is None else "yes" if value else "no"


def step_request(query: Mapping[str, str]) -> StepRequest:
    """Read what an address asks for; what is not understood has its default."""
    step, tab = query.get("step", "1"), query.get("tab", "action")
    unseen = _RANGE.fullmatch(query.get("unseen", ""))
    return StepRequest(
        step=int(step) if re.fullmatch(r"[0-9]{1,6}", step) else 1,
        tab=tab if tab in TABS else "action",
        after=query.get("view") == "after",
        diff=query.get("diff") == "1",
        search=query.get("q", "")[:_LONGEST],
        unseen=(int(unseen[1]), int(unseen[2])) if unseen else None,
        run=query.get("run", "")[:_LONGEST],
        pixels=query.get("view") == "pixels",
        zoom=query.get("zoom") == "1",
    )


def step_linker(path: tuple[str | int, ...], asked: StepRequest) -> Callable[..., str]:
    """Make addresses of the page at ``path`` with something changed."""

    def link(**changes: Any) -> str:
        other = asked._replace(**changes)
        return address(
            *path,
            step=other.step,
            tab=other.tab if other.tab != "action" else None,
            view="pixels" if other.pixels else "after" if other.after else None,
            zoom="1" if other.zoom else None,
            diff="1" if other.diff and other.tab == "tree" else None,
            q=other.search if other.tab == "tree" else None,
            unseen="{}-{}".format(*other.unseen) if other.unseen else None,
            run=other.run,
        )

    return link
