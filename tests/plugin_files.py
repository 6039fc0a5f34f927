"""Plugins of every kind, each a file."""

from __future__ import annotations

LOADER = """
from trajudge import Step, Trajectory, TrajectoryKey

def load(path, want):
    for line in path.read_text().splitlines():
        key = TrajectoryKey(benchmark="mine", agent="a", task_id=line)
        if want(key):
            steps = (Step(index=0, action="click"), Step(index=1))
            yield Trajectory(key=key, raw_task_id=line, goal=line, steps=steps, answer="done")
"""
ADAPTER = """
from trajudge.judges.adapters.scripted import ScriptedAdapter

def adapter(model, *, base_url, timeout, max_connections, dry_run):
    return ScriptedAdapter(lambda request: "<success>yes</success>", endpoint="echo")
"""
LABELS = """
from trajudge import TrajectoryKey
from trajudge.annotations import Label

def load(path):
    for line in path.read_text().splitlines():
        task, success = line.split()
        key = TrajectoryKey(benchmark="mine", agent="a", task_id=task)
        yield Label(key=key, raw_task_id=task, annotator="me", success=success == "yes")
"""
JUDGE = """
from trajudge import Message, Text, Verdict

async def judge(trajectory, ask):
    reply = await ask([Message(role="user", parts=(Text(text=trajectory.goal),))])
    return Verdict(success="yes" in reply.text)
"""
FILES = {"loader": LOADER, "labels": LABELS, "adapter": ADAPTER, "judge": JUDGE}
