"""What the agent did in a case: goal with its pictures, answer, last steps, last screenshot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from trajudge.eval.store.inputs import open_on_this_machine
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey
from trajudge.trajectories.needs import FINAL, Needs
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line

LAST_ACTIONS = 3
_NEEDS = Needs(screenshots=FINAL, answer=True, goal_images=True)


class CaseEvidence(NamedTuple):
    """``actions`` are the last of the run's; ``screenshot`` is the last step's, or the last one
    that was recorded."""

    goal: str
    answer: str | None
    steps: int
    url: str | None
    actions: tuple[str, ...]
    screenshot: ImageRef | None
    goal_images: tuple[ImageRef, ...] = ()


def read_evidence(
    specs: Sequence[str], named: bool, keys: Collection[TrajectoryKey]
) -> tuple[dict[TrajectoryKey, CaseEvidence], list[str]]:
    """Read these trajectories from their data; return what was found and notes on what was not.

    ``named``: the user named the data, which therefore must open (UserError). What a run's folder
    names is left out with a note where it is not on this machine; nothing is fetched.
    """
    wanted, notes = set(keys), list[str]()
    found: dict[TrajectoryKey, CaseEvidence] = {}
    for spec in specs if wanted else ():
        try:
            opened = spec if named else open_on_this_machine(spec)
            for one in open_source(opened, wanted.__contains__, _NEEDS):
                if isinstance(one, Trajectory) and one.key in wanted:
                    found.setdefault(one.key, _evidence(one))
        except UserError as error:
            if named:
                raise
            notes.append(f"no goals and screenshots from {spec}: {one_line(str(error))}")
    if missing := len(wanted - found.keys()):
        notes.append(
            f"{missing} of {len(wanted)} cases are shown without goal and answer: their "
            "trajectories are not in the data (name it with --data KIND:PATH)"
        )
    return found, notes


def _evidence(trajectory: Trajectory) -> CaseEvidence:
    shots = [step.observation.screenshot for step in trajectory.steps]
    return CaseEvidence(
        goal=trajectory.goal,
        answer=trajectory.answer,
        steps=len(trajectory.steps),
        url=trajectory.final.url,
        actions=tuple(step.action for step in trajectory.steps if step.action)[-LAST_ACTIONS:],
        screenshot=next((shot for shot in reversed(shots) if shot is not None), None),
        goal_images=trajectory.goal_images,
    )
