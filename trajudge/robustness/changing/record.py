"""Trajectories with other fields, steps or last words; every function returns a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trajudge.trajectories.actions import message_to_user
from trajudge.trajectories.model import Observation, Step, Trajectory

IDLE = "noop()"


def with_steps(trajectory: Trajectory, steps: Sequence[Step]) -> Trajectory:
    """Give the run these steps (``apply`` counts them from 0 again)."""
    return trajectory.model_copy(update={"steps": tuple(steps)})


def each_step(trajectory: Trajectory, change: Callable[[Step], Step]) -> Trajectory:
    """Change every step."""
    return with_steps(trajectory, [change(step) for step in trajectory.steps])


def each_page(trajectory: Trajectory, change: Callable[[Observation], Observation]) -> Trajectory:
    """Change what was seen in every step."""
    return each_step(trajectory, lambda step: shown(step, change(step.observation)))


def shown(step: Step, observation: Observation) -> Step:
    """Show something else in a step."""
    return step.model_copy(update={"observation": observation})


def with_final(trajectory: Trajectory, **fields: object) -> Trajectory:
    """Change fields of the last observation."""
    *before, last = trajectory.steps
    return with_steps(
        trajectory, [*before, shown(last, last.observation.model_copy(update=fields))]
    )


def with_step(trajectory: Trajectory, place: int, **fields: object) -> Trajectory:
    """Change fields of one step."""
    steps = list(trajectory.steps)
    steps[place] = steps[place].model_copy(update=fields)
    return with_steps(trajectory, steps)


def with_answer(trajectory: Trajectory, text: str | None) -> Trajectory:
    """Let the run end with another message, in its answer and in the action that sent it; None:
    with none. An action is added nowhere: the last step has none."""
    changed = trajectory.model_copy(update={"answer": text})
    for place in reversed(range(len(changed.steps))):
        if message_to_user(changed.steps[place].action) is not None:
            action = IDLE if text is None else f"send_msg_to_user({text!r})"
            return with_step(changed, place, action=action)
    return changed


def last_thought(trajectory: Trajectory) -> int | None:
    """Return the place of the last step with reasoning."""
    places = [place for place, step in enumerate(trajectory.steps) if step.reasoning]
    return places[-1] if places else None


def with_thought(trajectory: Trajectory, change: Callable[[str], str]) -> Trajectory:
    """Change the last reasoning there is."""
    place = last_thought(trajectory)
    if place is None:
        return trajectory
    return with_step(trajectory, place, reasoning=change(trajectory.steps[place].reasoning or ""))


def each_thought(trajectory: Trajectory, change: Callable[[str], str]) -> Trajectory:
    """Change the reasoning of every step that has some."""

    def changed(step: Step) -> Step:
        if not step.reasoning:
            return step
        return step.model_copy(update={"reasoning": change(step.reasoning)})

    return each_step(trajectory, changed)
