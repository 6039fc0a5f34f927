"""Apply a perturbation, and validate the result.

``apply`` is pure: equal source, seed and version give equal bytes. ``edits_between`` compares all
fields, so that every change is listed, and ``problems`` checks that the perturbation changes what
it declares and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Literal

from numpy.random import PCG64, Generator
from pydantic_core import to_json

from trajudge.robustness.model import (
    STEP_CHANNELS,
    Channel,
    Edit,
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
from trajudge.robustness.transforms import resolves, unparsable
from trajudge.trajectories.images import check_picture
from trajudge.trajectories.model import ImageRef, Step, Trajectory
from trajudge.util.errors import ImageUnreadable, UserError

# What differs between two trajectories.

STEP = "step"
# The channel of each field of the run, of an observation and of a step.
_WHOLE = {
    "key": Channel.METADATA,
    "raw_task_id": Channel.METADATA,
    "goal": Channel.GOAL,
    "goal_images": Channel.GOAL,
    "answer": Channel.ANSWER,
    "official_reward": Channel.METADATA,
    "terminated": Channel.METADATA,
    "truncated": Channel.METADATA,
    "telemetry": Channel.METADATA,
    "metadata": Channel.METADATA,
}
_SEEN = {
    "url": Channel.URL,
    "axtree": Channel.AXTREE,
    "axtree_pruned": Channel.AXTREE,
    "screenshot": Channel.SCREENSHOT,
    "page_error": Channel.ERROR,
}
_DONE = {"reasoning": Channel.REASONING, "action": Channel.ACTION}
CHANNELS = {name: frozenset({one}) for name, one in {**_WHOLE, **_SEEN, **_DONE}.items()}
CHANNELS[STEP] = STEP_CHANNELS


def edits_between(before: Trajectory, after: Trajectory) -> tuple[Edit, ...]:
    """List every field that differs. Added, removed or moved steps are edits of whole steps
    (``STEP``); others are compared by field."""
    whole = (
        _edit(None, name, getattr(before, name), getattr(after, name))
        for name in _WHOLE
        if getattr(before, name) != getattr(after, name)
    )
    return (*whole, *_step_edits(before.steps, after.steps))


def _step_edits(before: Sequence[Step], after: Sequence[Step]) -> Iterator[Edit]:
    if len(before) == len(after):
        yield from _each(before, after)
        return
    old, new = [_digest(step) for step in before], [_digest(step) for step in after]
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and j - i == m - k:
            yield from _each(before[i:j], after[k:m])
        elif tag != "equal":
            yield from (_edit(n, STEP, before[n], None) for n in range(i, j))
            yield from (_edit(n, STEP, None, after[n]) for n in range(k, m))


def _each(before: Sequence[Step], after: Sequence[Step]) -> Iterator[Edit]:
    """Compare steps pairwise; most are identical objects."""
    for old, new in zip(before, after, strict=True):
        if old is new:
            continue
        pairs = [(name, getattr(old, name), getattr(new, name)) for name in _DONE]
        seen, shown = old.observation, new.observation
        pairs += [(name, getattr(seen, name), getattr(shown, name)) for name in _SEEN]
        yield from (_edit(new.index, name, a, b) for name, a, b in pairs if a != b)


def _edit(step: int | None, field: str, before: object, after: object) -> Edit:
    kind: Literal["changed", "added", "removed"] = (
        "added" if before is None else "removed" if after is None else "changed"
    )
    return Edit(
        step=step,
        field=field,
        kind=kind,
        before_sha256=_digest(before),
        after_sha256=_digest(after),
    )


def _digest(value: object) -> str:
    """Hash a field: a text, an image's file, or a step without its index."""
    if isinstance(value, ImageRef):
        return value.sha256 or sha256(value.data or str(value.path).encode()).hexdigest()
    if isinstance(value, Step):
        seen = value.observation
        texts = [getattr(seen, name) for name in _SEEN if name != "screenshot"]
        picture = _digest(seen.screenshot) if seen.screenshot else None
        value = [*texts, picture, value.reasoning, value.action]
    if isinstance(value, tuple):
        value = [_digest(one) for one in value]
    encoded = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""
    if value is not None and not isinstance(value, str):
        encoded = to_json(value)
    return sha256(encoded).hexdigest()


# Carrying it out.

NO_FACTS = Facts()


def apply(
    perturbation: Perturbation, trajectory: Trajectory, facts: Facts | None = None, seed: int = 0
) -> Perturbed | NotApplicable:
    """Return the perturbed trajectory, or why the perturbation does not apply."""
    source = Subject(trajectory=trajectory, facts=facts or NO_FACTS)
    for need in sorted(perturbation.needs):
        lack, is_met = _NEEDS[need]
        if not is_met(source):
            return NotApplicable(lack)
    changed = perturbation.change(source, _generator(perturbation, trajectory, seed))
    if isinstance(changed, NotApplicable):
        return changed
    changed = renumbered(changed)
    edits = edits_between(trajectory, changed)
    if not edits and not perturbation.sample and perturbation.asking is None:
        return NotApplicable("nothing of it changes")
    return Perturbed(
        trajectory=changed,
        perturbation=perturbation.name,
        relations=perturbation.relations,
        edits=edits,
        sample=perturbation.sample,
    )


def compose(first: Perturbation, second: Perturbation) -> Perturbation:
    """Apply two perturbations in turn: ``first+second``.

    Raises UserError if they share a channel and are not both stackable, if their relations
    contradict each other, or if one of them changes how the judge is called.
    """
    name = f"{first.name}+{second.name}"
    if askings := [one.name for one in (first, second) if one.asking]:
        raise UserError(f"{name}: {askings[0]} changes the call to the judge: name it alone")
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
        stackable=first.stackable and second.stackable,
        summary=f"{first.summary} Then: {second.summary}",
        sample=max(first.sample, second.sample),
        states_answer=first.states_answer or second.states_answer,
        change=_in_turn(first, second),
    )


def renumbered(trajectory: Trajectory) -> Trajectory:
    """Renumber the steps from 0, after steps were added, removed or moved."""
    if all(step.index == index for index, step in enumerate(trajectory.steps)):
        return trajectory
    steps = tuple(
        Step(
            index=index,
            observation=step.observation,
            reasoning=step.reasoning,
            action=step.action,
        )
        for index, step in enumerate(trajectory.steps)
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
    """Return the generator for a trajectory and a perturbation, independent of other draws; an
    attack and its twin share it."""
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


# Why a perturbation does not apply to a run, and whether the run has what it needs.
_NEEDS: Mapping[Need, tuple[str, Callable[[Subject], bool]]] = {
    Need.ANSWER: ("the run has no final answer", lambda s: bool(s.trajectory.answer)),
    Need.AXTREE: (
        "the last step has no accessibility tree",
        lambda s: _last_shown(s, "axtree") or _last_shown(s, "axtree_pruned"),
    ),
    Need.SCREENSHOT: (
        "the last step has no screenshot",
        lambda s: _last_shown(s, "screenshot"),
    ),
    Need.REASONING: (
        "the run holds no reasoning",
        lambda s: any(step.reasoning for step in s.trajectory.steps),
    ),
    Need.ERROR: (
        "no action of the run failed",
        lambda s: any(step.observation.page_error for step in s.trajectory.steps),
    ),
    Need.FACTS: (
        "its truth does not rest on the state of an application",
        lambda s: s.facts.source == "state",
    ),
    Need.SIBLING: (
        "there is no run of the same case with the other outcome",
        lambda s: any(one.success is not s.facts.success for one in s.facts.siblings),
    ),
    Need.TRUTH_FALSE: ("the run is not known to have failed", lambda s: s.facts.success is False),
    Need.TRUTH_TRUE: ("the run is not known to have succeeded", lambda s: s.facts.success is True),
}


# Checking it.

# Ids of elements in trees and actions: numbers that state no answer.
_IDS = re.compile(r"(?<![^\t\n ])\[\w+\] ")
_TARGET = re.compile(r"^(?!send_msg_to_user|answer|report_infeasible|goto)\w+\(['\"]\w+['\"]")

_Part = tuple[str, re.Pattern[str] | None]


def problems(
    perturbation: Perturbation, source: Trajectory, perturbed: Perturbed, facts: Facts | None = None
) -> list[str]:
    """List the problems of a perturbed trajectory, a sentence each; empty if it is valid."""
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
    """Find trees that the change made unparsable; those of the source may be."""
    before = {tree for _, tree in _trees(source)}
    broken = [(index, unparsable(tree)) for index, tree in _trees(made) if tree not in before]
    if any(wrong for _, wrong in broken) and not any(map(unparsable, before)):
        yield from (
            f"step {index}: the tree does not parse at {wrong[0][:60]!r}"
            for index, wrong in broken
            if wrong
        )


def _trees(trajectory: Trajectory) -> Iterator[tuple[int, str]]:
    for step in trajectory.steps:
        page = step.observation
        yield from ((step.index, tree) for tree in (page.axtree, page.axtree_pruned) if tree)


def _lost_targets(source: Trajectory, made: Trajectory, facts: Facts | None) -> Iterator[str]:
    """Find actions on missing elements, except those of the source."""
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
    """Find a right answer in a text that did not contain it."""
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
    """Return how often a page may be repeated by added steps."""
    return 1 if len(made.steps) <= len(source.steps) else 1 + len(made.steps) - len(source.steps)


def _written(trajectory: Trajectory) -> list[_Part]:
    """List the texts of a run, without the parts that never state an answer."""
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
