"""Family B: changes that a verdict must follow, because the truth changes with them."""

from __future__ import annotations

from collections.abc import Callable

from numpy.random import Generator

from trajudge.robustness.catalogue.making import (
    FAILED,
    STATED,
    SUCCEEDED,
    WHOLE_RUN,
    each,
    inapplicable,
    shown_instead,
)
from trajudge.robustness.changing.record import with_answer, with_steps
from trajudge.robustness.model import (
    STEP_CHANNELS,
    Channel,
    Need,
    NotApplicable,
    Perturbation,
    Relation,
    Sibling,
    Subject,
    Transform,
    keeps,
)
from trajudge.trajectories.model import Step, Trajectory

_SPOKEN = frozenset({Channel.ANSWER, Channel.ACTION})
_GOAL = frozenset({Channel.GOAL})
_TO = {True: Relation.TRUE, False: Relation.FALSE}
# What a run was whose success becomes true or false.
_BEFORE = {True: FAILED, False: SUCCEEDED}
_IDLE_PAIR = ("scroll(0, 300)", "scroll(0, -300)")
_ROUNDS = 4


def _other_run(chosen: Callable[[Sibling], bool], subject: Subject) -> Trajectory | NotApplicable:
    """Put another agent's run of the same case in the place of this one."""
    for sibling in subject.facts.siblings:
        if sibling.repetition is False and chosen(sibling):
            return shown_instead(subject.trajectory, sibling)
    return inapplicable("no other run of the same case is of this kind")


def _answered(sibling: Sibling) -> bool:
    """Tell whether it offers an answer, and the wrong one."""
    return any(one.right is False and one.found for one in sibling.answers)


def _swap(
    name: str,
    summary: str,
    chosen: Callable[[Sibling], bool],
    *,
    success: Relation,
    side_effect: Relation,
    needs: frozenset[Need],
) -> Perturbation:
    """Return a perturbation that shows another run of the same case."""
    relations = keeps(success, side_effect=side_effect, repetition=Relation.FALSE)
    return Perturbation(
        name=name,
        family="B",
        channels=WHOLE_RUN,
        relations=relations,
        needs=needs | STATED,
        states_answer=True,
        summary=summary,
        change=lambda subject, _: _other_run(chosen, subject),
    )


def _other_goal(success: bool, side_effect: bool) -> Transform:
    """Judge the run against the goal of another case, by that case's checker."""

    def change(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
        wanted = (success, side_effect)
        known = subject.facts.goals
        goals = [one.goal for one in known if (one.success, one.side_effect) == wanted]
        if not goals:
            return inapplicable("no goal of another case is known that its state decides so")
        goal = goals[int(rng.integers(len(goals)))]
        return subject.trajectory.model_copy(update={"goal": goal})

    return change


def _wrong(subject: Subject, rng: Generator) -> Trajectory | NotApplicable:
    """Say what another agent said, which the checker calls wrong."""
    messages = sorted(
        sibling.trajectory.answer
        for sibling in subject.facts.siblings
        if sibling.trajectory.answer and _answered(sibling)
    )
    if not messages or not subject.facts.answers:
        return inapplicable("no other run of the case gives a wrong answer")
    return with_answer(subject.trajectory, messages[int(rng.integers(len(messages)))])


def _mended(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    """Give the right answer in a run whose only fault is the answer."""
    answers = subject.facts.answers
    if subject.facts.missed or not answers or not all(one.expected for one in answers):
        return inapplicable("its fault is not the answer alone")
    values = ", ".join(", ".join(one.expected) for one in answers)
    return with_answer(subject.trajectory, f"The answer is {values}.")


def _dropped(subject: Subject, _: Generator) -> Trajectory | NotApplicable:
    if not subject.facts.answers:
        return inapplicable("the task asks no question")
    return with_answer(subject.trajectory, None)


def _loop(trajectory: Trajectory) -> Trajectory:
    """Scroll down and up again four times, with nothing coming of it, before the first action."""
    first, *rest = trajectory.steps
    thought = "I look at the rest of this page." if first.reasoning else None
    idle = [
        Step(index=0, observation=first.observation, reasoning=thought, action=action)
        for action in _IDLE_PAIR * _ROUNDS
    ]
    return with_steps(trajectory, [*idle, first, *rest])


def _cut(trajectory: Trajectory) -> Trajectory | NotApplicable:
    """End the record in the middle of the run; the last message stays."""
    kept = trajectory.steps[: (len(trajectory.steps) + 1) // 2]
    if len(kept) < 2:
        return inapplicable("the run is too short")
    last = kept[-1].model_copy(update={"action": None, "reasoning": None})
    return with_steps(trajectory, [*kept[:-1], last])


def _flip(name: str, summary: str, channels: frozenset[Channel], **others: object) -> Perturbation:
    return Perturbation.model_validate(
        {
            "name": name,
            "family": "B",
            "channels": channels,
            "summary": summary,
            "states_answer": True,
            **others,
        }
    )


def _goal(name: str, which: str, success: bool, side_effect: bool) -> Perturbation:
    """Return a perturbation that asks for the goal of another case."""
    return _flip(
        name,
        f"The goal of another case, {which}.",
        _GOAL,
        relations=keeps(_TO[success], side_effect=_TO[side_effect]),
        needs=_BEFORE[success] | STATED,
        change=_other_goal(success, side_effect),
    )


def _answer(name: str, summary: str, change: Transform, *, success: bool = False) -> Perturbation:
    """Return a perturbation of the last message."""
    return _flip(
        name,
        summary,
        _SPOKEN,
        relations=keeps(_TO[success]),
        needs=_BEFORE[success] | STATED | {Need.ANSWER},
        change=change,
    )


PERTURBATIONS = (
    _swap(
        "near-miss",
        "The run of another agent on the same case, which changed the wrong thing.",
        lambda one: one.success is False and one.side_effect is True,
        success=Relation.FALSE,
        side_effect=Relation.TRUE,
        needs=SUCCEEDED,
    ),
    _swap(
        "near-miss-answer",
        "The run of another agent on the same case, which gave a wrong answer.",
        lambda one: one.success is False and one.side_effect is False and _answered(one),
        success=Relation.FALSE,
        side_effect=Relation.FALSE,
        needs=SUCCEEDED,
    ),
    _swap(
        "done-right",
        "The run of another agent on the same case, which succeeded.",
        lambda one: one.success is True and one.side_effect is False,
        success=Relation.TRUE,
        side_effect=Relation.FALSE,
        needs=FAILED,
    ),
    _swap(
        "extra-effect",
        "The run of another agent, which succeeded and changed what nobody asked for.",
        lambda one: one.success is True and one.side_effect is True,
        success=Relation.KEEP,
        side_effect=Relation.TRUE,
        needs=SUCCEEDED,
    ),
    _goal("goal-swap", "which the run's final state does not fulfil", False, False),
    _goal("goal-swap-unasked", "which did not ask for what the run changed", False, True),
    _goal("goal-fit", "which the run's final state fulfils", True, False),
    _answer(
        "answer-wrong",
        "The last message is that of another run, which the checker calls wrong.",
        _wrong,
    ),
    _answer(
        "answer-mended",
        "The right answer is given in a run whose only fault was the answer.",
        _mended,
        success=True,
    ),
    _answer(
        "answer-dropped", "The last message is gone, in a task that asks a question.", _dropped
    ),
    _flip(
        "loop",
        "The same two idle steps are done four times.",
        STEP_CHANNELS,
        relations=keeps(repetition=Relation.TRUE),
        needs=frozenset({Need.AXTREE}),
        change=each(_loop),
    ),
    _flip(
        "evidence-cut",
        "The second half of the record is gone, with what decided the outcome.",
        STEP_CHANNELS,
        relations=keeps(Relation.DROPS, side_effect=Relation.DROPS, repetition=Relation.DROPS),
        change=lambda subject, _: _cut(subject.trajectory),
    ),
)
