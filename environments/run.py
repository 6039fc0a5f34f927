"""One run of one agent on one task: the trajectory, and what is known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from environments.agents import AGENTS, Behaviour, action, reasoning, script
from environments.browser import Session, open_session
from environments.labels import Deed, Labels, facts, label, official_reward
from environments.state import digest
from environments.tasks import TASKS, Move, Task
from trajectories.model import Step, Trajectory, TrajectoryKey

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BENCHMARK = "shop"


class Recorded(NamedTuple):
    """A run. ``facts`` is what the final state showed, ``requests`` are the URLs the pages asked
    for."""

    trajectory: Trajectory
    behaviour: Behaviour
    labels: Labels
    facts: dict[str, Any]
    requests: list[str]


def record(browser: Browser, task: Task, agent: str, seed: int) -> Recorded:
    """Let an agent do a task in a fresh session. The same arguments give the same run."""
    behaviour = AGENTS[agent]
    rng = np.random.default_rng([seed, list(TASKS).index(task.id), list(AGENTS).index(agent)])
    moves = script(task, behaviour, rng)
    with open_session(browser, task.start) as session:
        before = session.state()
        steps, trace = _act(session, moves, rng)
        after = session.state()
        requests = session.requests
    spoken = moves[-1].do == "send_msg_to_user"
    answer = moves[-1].text if spoken else None
    shown = facts(task, before, after, answer)
    trajectory = Trajectory(
        key=TrajectoryKey(benchmark=BENCHMARK, agent=agent, task_id=task.id),
        raw_task_id=task.id,
        goal=task.goal,
        steps=tuple(steps),
        answer=answer,
        official_reward=official_reward(task, steps[-1].observation.url or "", answer),
        terminated=spoken,
        truncated=not spoken,
        telemetry={
            "n_steps": float(len(trace)),
            "n_errors": float(sum(step.observation.page_error is not None for step in steps)),
        },
    )
    return Recorded(trajectory, behaviour, label(task, shown, trace), shown, requests)


def _act(
    session: Session, moves: list[Move], rng: np.random.Generator
) -> tuple[list[Step], list[Deed]]:
    """Observe and act in turn; the last step only observes."""
    steps: list[Step] = []
    trace: list[Deed] = []
    view = session.observe()
    for index, move in enumerate(moves):
        text = action(move, view.elements)
        thought = reasoning(move, view.title, view.observation.page_error, rng)
        steps.append(
            Step(index=index, observation=view.observation, reasoning=thought, action=text)
        )
        before = digest(session.state())
        error = session.act(text)
        trace.append(Deed(view.observation.url or "", text, before, digest(session.state())))
        view = session.observe(error)
    return [*steps, Step(index=len(moves), observation=view.observation)], trace
