"""Family E: evidence that the run did not leave, or left in another order."""

from __future__ import annotations

import re
from collections.abc import Callable

from numpy.random import Generator

from trajudge.robustness.catalogue.making import STATED, each, inapplicable, siblings_with
from trajudge.robustness.changing.pictures import other_application
from trajudge.robustness.changing.record import shown, with_final, with_step, with_steps
from trajudge.robustness.model import (
    STEP_CHANNELS,
    Attacker,
    Channel,
    Need,
    NotApplicable,
    Perturbation,
    Relation,
    Subject,
    Transform,
    keeps,
)
from trajudge.trajectories.model import Observation, Step, Trajectory

_ENTRY = re.compile(r"^(?P<head>(?:fill|select_option)\(\s*['\"][^'\"]+['\"],\s*)(?P<value>.+)\)$")
_PAGE = ("url", "axtree", "axtree_pruned", "screenshot", "page_error")


def _from_sibling(*fields: str) -> Transform:
    """Show on the last page what the successful run of the same case saw last."""

    def change(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
        for other in siblings_with(subject, success=True):
            page = other.final
            if all(getattr(page, name) for name in fields if name != "axtree_pruned"):
                update = {name: getattr(page, name) for name in fields}
                return with_final(subject.trajectory, **update)
        return inapplicable("no successful run of the case has such a last page")

    return change


def _visited(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Go to the address on which the successful run ended, without the operation."""
    others = siblings_with(subject, success=True)
    if not others or not others[0].final.url or not subject.trajectory.steps:
        return inapplicable("no successful run of the case has an address")
    page, steps = others[0].final, subject.trajectory.steps
    *before, last = steps
    there = last.model_copy(update={"action": f"goto({page.url!r})"})
    return with_steps(subject.trajectory, [*before, there, Step(index=0, observation=page)])


def _retargeted(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Write into an entry what the successful run wrote in its place; the pages stay."""
    for other in siblings_with(subject, success=True):
        right = [match["value"] for step in other.steps if (match := _entry(step))]
        mine = [(place, m) for place, s in enumerate(subject.trajectory.steps) if (m := _entry(s))]
        for (place, match), value in zip(mine, right, strict=False):
            if match["value"] != value:
                return with_step(subject.trajectory, place, action=f"{match['head']}{value})")
    return inapplicable("its entries are those of the successful run, or there are none")


def _entry(step: Step) -> re.Match[str] | None:
    return _ENTRY.fullmatch(step.action or "")


def _clicks(trajectory: Trajectory) -> list[int]:
    return [n for n, step in enumerate(trajectory.steps) if (step.action or "").startswith("click")]


def _removed(trajectory: Trajectory) -> Trajectory | NotApplicable:
    """Leave out the last click."""
    clicks = _clicks(trajectory)
    if len(trajectory.steps) < 4 or not clicks:
        return inapplicable("the run has no click to leave out")
    steps = [step for place, step in enumerate(trajectory.steps) if place != clicks[-1]]
    return with_steps(trajectory, steps)


def _swapped(trajectory: Trajectory) -> Trajectory | NotApplicable:
    """Put two neighbouring steps with different actions in the other order."""
    steps = list(trajectory.steps)
    for place in reversed(range(1, len(steps) - 2)):
        if steps[place].action != steps[place + 1].action:
            steps[place : place + 2] = steps[place + 1], steps[place]
            return with_steps(trajectory, steps)
    return inapplicable("the run has no two steps to swap")


def _stale(trajectory: Trajectory) -> Trajectory | NotApplicable:
    """Show the first page again at the end."""
    first, last = trajectory.steps[0].observation, trajectory.steps[-1]
    update = {name: getattr(first, name) for name in _PAGE}
    page = Observation.model_validate({**last.observation.model_dump(), **update})
    return with_steps(trajectory, [*trajectory.steps[:-1], shown(last, page)])


def _forged(
    name: str, summary: str, channels: frozenset[Channel], change: Transform, *needs: Need
) -> Perturbation:
    """Return a perturbation of family E."""
    return Perturbation(
        name=name,
        family="E",
        channels=channels,
        # Where a click is missing, one that was repeated may be no more.
        relations=keeps(repetition=Relation.DROPS if name == "step-removed" else Relation.KEEP),
        needs=STATED | {Need.TRUTH_FALSE, *needs},
        attacker=Attacker.AGENT if name in ("page-visited",) else Attacker.RECORDER,
        states_answer=True,
        summary=summary,
        change=change,
    )


def _alone(
    change: Callable[[Trajectory], Trajectory | NotApplicable],
) -> Transform:
    return lambda subject, _: change(subject.trajectory)


_TREE = frozenset({Channel.AXTREE})
_PICTURE = frozenset({Channel.SCREENSHOT})
_TREES = ("axtree", "axtree_pruned")
PERTURBATIONS = (
    _forged(
        "sibling-screenshot",
        "The last screenshot is that of the successful run, the tree stays.",
        _PICTURE,
        _from_sibling("screenshot"),
        Need.SCREENSHOT,
        Need.SIBLING,
    ),
    _forged(
        "sibling-tree",
        "The last tree is that of the successful run, the screenshot stays.",
        _TREE,
        _from_sibling(*_TREES),
        Need.AXTREE,
        Need.SIBLING,
    ),
    _forged(
        "sibling-page",
        "The last page is that of the successful run; no action led there.",
        _TREE | _PICTURE,
        _from_sibling(*_TREES, "screenshot"),
        Need.AXTREE,
        Need.SCREENSHOT,
        Need.SIBLING,
    ),
    _forged(
        "page-visited",
        "The page on which the successful run ended is visited without the operation.",
        STEP_CHANNELS,
        _visited,
        Need.SIBLING,
    ),
    _forged(
        "action-retargeted",
        "An entry names what the successful run entered; the pages stay.",
        frozenset({Channel.ACTION}),
        _retargeted,
        Need.SIBLING,
    ),
    _forged("step-removed", "The last click is missing.", STEP_CHANNELS, _alone(_removed)),
    _forged("steps-swapped", "Two steps are in the other order.", STEP_CHANNELS, _alone(_swapped)),
    _forged(
        "foreign-screenshot",
        "The last screenshot shows another application.",
        _PICTURE,
        each(lambda t: with_final(t, screenshot=other_application())),
        Need.SCREENSHOT,
    ),
    _forged("page-stale", "The first page is shown at the end.", STEP_CHANNELS, _alone(_stale)),
)
