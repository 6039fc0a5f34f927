"""Runs of tool-calling agents as JSON Lines, with a thought, a call and its observation per step.

As published by trajectory-judge (``trajectories.jsonl``): ``trajectory_id, instance_id, goal,
steps[] {thought, call {tool, args}, observation}, final_answer, label``. A call's observation is
shown at the next step, so a run of n calls has n + 1 steps, of which the first has no observation
and the last no action. Runs of one instance are attempts at one task, in file order.

The label, and the id, which names the injected fault, are never read into a trajectory (``LEAKS``):
``annotations.toolcalls`` reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from trajudge.trajectories.loaders._files import readable
from trajudge.trajectories.loaders._run import PlacedRun, RunFile, Values
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util import jsonl as python_json

KIND = "toolcalls"
BENCHMARK = "trajectory-judge"
LEAKS = ("trajectories.jsonl:trajectory_id", "trajectories.jsonl:label")
# Agents of known files; other agents are named after their file.
_AGENTS = {"trajectories": "scripted"}


class _Call(msgspec.Struct):
    """A tool's name and arguments."""

    tool: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class _CalledStep(msgspec.Struct):
    """One thought, its call, and the call's result."""

    call: _Call | None = None
    thought: Any = None
    observation: Any = None


class _Run(msgspec.Struct):
    """One line of the file, without the label."""

    goal: Any
    steps: list[_CalledStep]
    final_answer: Any = None


_RUN = msgspec.json.Decoder(_Run)


class _Identity(msgspec.Struct):
    trajectory_id: str
    instance_id: str | int | None = None


_IDENTITY = msgspec.json.Decoder(_Identity)


def _identify(file: Path, line: bytes) -> TrajectoryKey:
    identity = python_json.decode(line, _IDENTITY)
    named = identity.instance_id
    task = readable(str(identity.trajectory_id if named in (None, "") else named))
    agent = _AGENTS.get(file.stem, readable(file.stem))
    return TrajectoryKey(benchmark=BENCHMARK, agent=agent, task_id=task)


def _read(placed: PlacedRun) -> Trajectory:
    values, key = Values(), placed.key
    run = python_json.decode(placed.data, _RUN)
    steps, seen = [], None
    for index, step in enumerate(run.steps):
        reasoning = values.text(step.thought, "thought", f"of step {index}")
        observation, action = Observation(axtree=seen), _called(step.call)
        steps.append(Step(index=index, observation=observation, reasoning=reasoning, action=action))
        seen = _shown(step.observation)
    if run.steps:
        steps.append(Step(index=len(run.steps), observation=Observation(axtree=seen)))
    answer = values.text(run.final_answer, "final_answer")
    goal = values.text(run.goal, "goal") or ""
    return Trajectory(
        key=key,
        raw_task_id=key.task_id,
        goal=goal,
        steps=tuple(steps),
        answer=answer,
        terminated=answer is not None,
        telemetry={"n_steps": float(len(run.steps))},
        metadata={"warnings": [*values.warnings]} if values.warnings else {},
    )


def _called(call: _Call | None) -> str | None:
    """Write a call as ``tool(name='value', …)``."""
    if call is None:
        return None
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.args.items())
    return readable(f"{call.tool}({arguments})")


def _shown(observation: Any) -> str | None:
    return None if observation is None else readable(python_json.encode(observation).decode())


FILE = RunFile(
    KIND,
    "trajectories.jsonl",
    (b'"trajectory_id"', b'"steps"', b'"call"', b'"observation"'),
    "tool calls",
    _identify,
    _read,
)
detect, load = FILE.detect, FILE.load
