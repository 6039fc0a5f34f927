"""Family A, screenshots: other bytes and sizes of the same page, and fewer of the same pages."""

from __future__ import annotations

from collections.abc import Callable

from trajudge.robustness.catalogue.making import inapplicable, invariance
from trajudge.robustness.changing.pictures import compressed, cropped, scaled
from trajudge.robustness.changing.record import shown, with_final, with_steps
from trajudge.robustness.model import Channel, Need, NotApplicable, Perturbation
from trajudge.trajectories.model import ImageRef, Step, Trajectory


def _redrawn(name: str, summary: str, change: Callable[[ImageRef], ImageRef]) -> Perturbation:
    def redrawn(trajectory: Trajectory) -> Trajectory | NotApplicable:
        ref = trajectory.final.screenshot
        if ref is None or ref.problem:
            return inapplicable("the last screenshot cannot be read")
        return with_final(trajectory, screenshot=change(ref))

    return invariance(name, summary, {Channel.SCREENSHOT}, redrawn, {Need.SCREENSHOT})


def _without_repeats(trajectory: Trajectory, *fields: str) -> Trajectory | NotApplicable:
    """Drop what shows the page of the step before again; the last page is kept."""
    steps: list[Step] = []
    for place, step in enumerate(trajectory.steps):
        page, before = step.observation, trajectory.steps[place - 1].observation
        same = page.axtree and (page.url, page.axtree) == (before.url, before.axtree)
        repeats = place and same and place < len(trajectory.steps) - 1
        update = dict.fromkeys(fields) if repeats else {}
        steps.append(shown(step, page.model_copy(update=update)))
    return with_steps(trajectory, steps)


PERTURBATIONS = (
    _redrawn("picture-jpeg", "The last screenshot is a JPEG of quality 80.", compressed),
    _redrawn("picture-scaled", "The last screenshot has three quarters of its size.", scaled),
    _redrawn("picture-cropped", "3 % of each side of the last screenshot are cut off.", cropped),
    invariance(
        "frames-fewer",
        "A screenshot that shows the page of the step before again is left out.",
        {Channel.SCREENSHOT},
        lambda t: _without_repeats(t, "screenshot"),
        {Need.SCREENSHOT, Need.AXTREE},
    ),
    invariance(
        "trees-fewer",
        "A tree that shows the page of the step before again is left out.",
        {Channel.AXTREE},
        lambda t: _without_repeats(t, "axtree", "axtree_pruned"),
        {Need.AXTREE},
    ),
)
