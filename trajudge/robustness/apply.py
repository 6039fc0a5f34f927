"""Carry out a perturbation: pure, the same bytes for the same source, seed and version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256

from numpy.random import PCG64, Generator

from trajudge.robustness.edits import edits_between
from trajudge.robustness.model import (
    Facts,
    LabelQuestion,
    Need,
    NotApplicable,
    Perturbation,
    Perturbed,
    Relation,
    Subject,
    combined,
)
from trajudge.trajectories.model import Step, Trajectory
from trajudge.util.errors import UserError

NO_FACTS = Facts()


def apply(
    perturbation: Perturbation, trajectory: Trajectory, facts: Facts | None = None, seed: int = 0
) -> Perturbed | NotApplicable:
    """Transform the trajectory, or say why this perturbation has nothing to say about it."""
    source = Subject(trajectory=trajectory, facts=facts or NO_FACTS)
    for need in sorted(perturbation.needs):
        if not _MET[need](source):
            return NotApplicable(reason=_LACKS[need])
    changed = perturbation.change(source, _generator(perturbation, trajectory, seed))
    if isinstance(changed, NotApplicable):
        return changed
    changed = renumbered(changed)
    edits = edits_between(trajectory, changed)
    if not edits and not perturbation.sample and perturbation.asking is None:
        return NotApplicable(reason="nothing of it changes")
    return Perturbed(
        trajectory=changed,
        perturbation=perturbation.name,
        relations=perturbation.relations,
        edits=edits,
        sample=perturbation.sample,
    )


def compose(first: Perturbation, second: Perturbation) -> Perturbation:
    """Apply one perturbation after the other: ``first+second``.

    Raises UserError if they share a channel and are not both stackable, if their relations
    contradict each other, or if one of them changes how the judge is asked.
    """
    name = f"{first.name}+{second.name}"
    if asked := [one.name for one in (first, second) if one.asking]:
        raise UserError(f"{name}: {asked[0]} changes how a judge is asked: name it alone")
    if first.channels & second.channels and not (first.stackable and second.stackable):
        shared = ", ".join(sorted(first.channels & second.channels))
        raise UserError(f"{name}: both change {shared}: compose perturbations of other channels")
    return Perturbation(
        name=name,
        family=max(first.family, second.family),
        version=first.version * 1000 + second.version,
        channels=first.channels | second.channels,
        relations=_composed(name, first.relations, second.relations),
        needs=first.needs | second.needs,
        attacker=max(first.attacker, second.attacker, key=lambda one: one != "none"),
        grade="native" if {first.grade, second.grade} == {"native"} else "edited",
        stackable=first.stackable and second.stackable,
        summary=f"{first.summary} Then: {second.summary}",
        sample=max(first.sample, second.sample),
        states_answer=first.states_answer or second.states_answer,
        change=_in_turn(first, second),
    )


def renumbered(trajectory: Trajectory) -> Trajectory:
    """Count the steps from 0 again, where some were added, removed or moved."""
    if all(step.index == place for place, step in enumerate(trajectory.steps)):
        return trajectory
    steps = tuple(
        Step(
            index=place,
            observation=step.observation,
            reasoning=step.reasoning,
            action=step.action,
        )
        for place, step in enumerate(trajectory.steps)
    )
    return trajectory.model_copy(update={"steps": steps})


def _composed(
    name: str, first: Mapping[LabelQuestion, Relation], second: Mapping[LabelQuestion, Relation]
) -> dict[LabelQuestion, Relation]:
    relations = {}
    for question in LabelQuestion:
        both = combined((first[question], second[question]))
        if both is None:
            raise UserError(f"{name}: one makes {question} true, the other false: choose others")
        relations[question] = both
    return relations


def _in_turn(
    first: Perturbation, second: Perturbation
) -> Callable[[Subject, Generator], Trajectory | NotApplicable]:
    def change(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
        halfway = first.change(subject, rng)
        if isinstance(halfway, NotApplicable):
            return halfway
        return second.change(subject.model_copy(update={"trajectory": renumbered(halfway)}), rng)

    return change


def _generator(perturbation: Perturbation, trajectory: Trajectory, seed: int) -> Generator:
    """Draw for one trajectory and perturbation, whatever else is drawn; an attack and its twin
    draw the same."""
    words = (
        perturbation.twin or perturbation.name,
        str(perturbation.version),
        str(trajectory.key),
        str(seed),
    )
    digest = sha256("\0".join(words).encode("utf-8", "surrogatepass")).digest()
    return Generator(PCG64(int.from_bytes(digest)))


def _last_shown(subject: Subject, field: str) -> bool:
    return bool(getattr(subject.trajectory.final, field))


_MET: Mapping[Need, Callable[[Subject], bool]] = {
    Need.ANSWER: lambda s: bool(s.trajectory.answer),
    Need.AXTREE: lambda s: _last_shown(s, "axtree") or _last_shown(s, "axtree_pruned"),
    Need.SCREENSHOT: lambda s: _last_shown(s, "screenshot"),
    Need.REASONING: lambda s: any(step.reasoning for step in s.trajectory.steps),
    Need.ERROR: lambda s: any(step.observation.page_error for step in s.trajectory.steps),
    Need.FACTS: lambda s: s.facts.source == "state",
    Need.SIBLING: lambda s: any(one.success is not s.facts.success for one in s.facts.siblings),
    Need.TRUTH_FALSE: lambda s: s.facts.success is False,
    Need.TRUTH_TRUE: lambda s: s.facts.success is True,
}
_LACKS: Mapping[Need, str] = {
    Need.ANSWER: "the run has no final answer",
    Need.AXTREE: "the last step has no accessibility tree",
    Need.SCREENSHOT: "the last step has no screenshot",
    Need.REASONING: "the run holds no reasoning",
    Need.ERROR: "no action of the run failed",
    Need.FACTS: "its truth does not rest on the state of an application",
    Need.SIBLING: "there is no run of the same case with the other outcome",
    Need.TRUTH_FALSE: "the run is not known to have failed",
    Need.TRUTH_TRUE: "the run is not known to have succeeded",
}
