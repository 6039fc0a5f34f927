"""Whether a perturbation did what it declares and nothing else.

Checked on what came out, not on how it was made: the edits are those that ``edits_between`` finds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from trajudge.robustness.changing.trees import resolves, unparsable
from trajudge.robustness.edits import CHANNELS, edits_between
from trajudge.robustness.model import Channel, Facts, Perturbation, Perturbed
from trajudge.trajectories.images import check_picture
from trajudge.trajectories.model import Step, Trajectory
from trajudge.util.errors import ImageUnreadable

# The ids of elements, in trees and as what an action acts on: a number that tells no answer.
_IDS = re.compile(r"(?<![^\t\n ])\[\w+\] ")
_TARGET = re.compile(r"^(?!send_msg_to_user|answer|report_infeasible|goto)\w+\(['\"]\w+['\"]")

_Part = tuple[str, re.Pattern[str] | None]


def problems(
    perturbation: Perturbation, source: Trajectory, perturbed: Perturbed, facts: Facts | None = None
) -> list[str]:
    """List what is wrong with a perturbed trajectory, a sentence each; none: it is valid."""
    made = perturbed.trajectory
    return [
        *_undeclared(perturbation, source, perturbed),
        *_broken_trees(source, made),
        *_lost_targets(source, made, facts),
        *_broken_pictures(source, made),
        *(() if perturbation.states_answer or facts is None else _leaks(source, made, facts)),
    ]


def _undeclared(
    perturbation: Perturbation, source: Trajectory, perturbed: Perturbed
) -> Iterator[str]:
    edits = edits_between(source, perturbed.trajectory)
    if edits != perturbed.edits:
        yield "its list of edits is not what differs"
    for edit in edits:
        if missing := CHANNELS[edit.field] - perturbation.channels:
            yield f"{edit.field} of step {edit.step} changed: {min(missing)} is not declared"
    declared = perturbation.channels - {Channel.PROMPT}
    if declared and not edits:
        yield "it declares a change and there is none"


def _broken_trees(source: Trajectory, made: Trajectory) -> Iterator[str]:
    """Find what a change broke: trees of the source are as they were."""
    before = {tree for _, tree in _trees(source)}
    broken = [(place, unparsable(tree)) for place, tree in _trees(made) if tree not in before]
    if any(wrong for _, wrong in broken) and not any(map(unparsable, before)):
        yield from (
            f"step {place}: the tree does not parse at {wrong[0][:60]!r}"
            for place, wrong in broken
            if wrong
        )


def _trees(trajectory: Trajectory) -> Iterator[tuple[int, str]]:
    for step in trajectory.steps:
        page = step.observation
        yield from ((step.index, tree) for tree in (page.axtree, page.axtree_pruned) if tree)


def _lost_targets(source: Trajectory, made: Trajectory, facts: Facts | None) -> Iterator[str]:
    """Find actions on what is not on the page, beyond those that the agents did themselves."""
    known = (*facts.siblings, *facts.again.values()) if facts else ()
    others = [one.trajectory for one in known]
    runs = [source, *(other for other in others if made.steps == other.steps)]
    missed = [step for step in made.steps if not _resolves(step)]
    if len(missed) > max(sum(not _resolves(step) for step in run.steps) for run in runs):
        step = missed[-1]
        yield f"step {step.index}: {step.action!r} acts on what is not on the page"


def _resolves(step: Step) -> bool:
    return resolves(step, step.observation.axtree or step.observation.axtree_pruned)


def _broken_pictures(source: Trajectory, made: Trajectory) -> Iterator[str]:
    known = {id(step.observation.screenshot) for step in source.steps}
    for step in made.steps:
        ref = step.observation.screenshot
        if ref is None or id(ref) in known:
            continue
        try:
            check_picture(ref)
        except ImageUnreadable as error:
            yield f"step {step.index}: {error}"


def _leaks(source: Trajectory, made: Trajectory, facts: Facts) -> Iterator[str]:
    """Find a right answer in a text that did not hold it."""
    answers = {value for one in facts.answers for value in one.expected if value}
    before, after = _written(source), _written(made)
    # Most texts of a variant are its source's: only an answer in the others can be one more, or
    # one that runs over the lines between two texts.
    new = _joined(Counter(after) - Counter(before)) if answers else ""
    for answer in answers:
        if ("\n" in answer or answer in new) and _joined(after).count(answer) > (
            _joined(before).count(answer) * _copies(source, made)
        ):
            yield f"it states the expected answer {answer!r}"


def _copies(source: Trajectory, made: Trajectory) -> int:
    """Return how often a page may come again where steps were added."""
    return 1 if len(made.steps) <= len(source.steps) else 1 + len(made.steps) - len(source.steps)


def _written(trajectory: Trajectory) -> list[_Part]:
    """List the texts of a run, each with what of it tells no answer."""
    texts: list[tuple[str | None, re.Pattern[str] | None]] = [
        (trajectory.goal, None),
        (trajectory.answer, None),
    ]
    for step in trajectory.steps:
        page = step.observation
        texts += [(page.url, None), (page.axtree, _IDS), (page.page_error, None)]
        texts += [(step.reasoning, None), (step.action, _TARGET)]
    return [(text, hidden) for text, hidden in texts if text]


def _joined(texts: Iterable[_Part]) -> str:
    shown = (hidden.sub("", text) if hidden else text for text, hidden in texts)
    return "\n".join(text for text in shown if text)
