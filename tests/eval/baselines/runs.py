"""Made-up runs with an answer and a few actions."""

from __future__ import annotations

from trajudge.annotations import Label
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey

LAST = {True: "send_msg_to_user('Done.')", False: "report_infeasible('no')"}


def run(
    task: int, answer: str | None, *, agent: str = "agent", benchmark: str = "webarena"
) -> Trajectory:
    """A run of two steps, whose last says something where there is an answer."""
    key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")
    steps = (Step(index=0, action="click('1')"), Step(index=1, action=LAST[answer is not None]))
    return Trajectory(key=key, raw_task_id=key.task_id, goal="Find it.", steps=steps, answer=answer)


def labelled(one: Trajectory, success: bool | None) -> Label:
    return Label(key=one.key, raw_task_id=one.raw_task_id, annotator="A", success=success)
