"""Small trajectories, and settings of a judge at the loopback server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.llm_server import LlmServer
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.rewards.settings import RewardConfig
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey

DOCS = Path(__file__).parents[2] / "docs"
ACCEPTED = "<reasoning>r</reasoning><success>Successful</success><side>No</side><loop>No</loop>"


def trajectory(task: object, answer: str = "done") -> Trajectory:
    key = TrajectoryKey(benchmark="shop", agent="a", task_id=f"t{task}")
    page = Observation(url="http://x/", axtree="[1] RootWebArea 'x'")
    steps = (
        Step(index=0, observation=page, action=f"send_msg_to_user({answer!r})"),
        Step(index=1, observation=page),
    )
    goal = f"Do task {task}"
    return Trajectory(
        key=key, raw_task_id=key.task_id, goal=goal, steps=steps, answer=answer, terminated=True
    )


def config(server: LlmServer, cache: Path, **more: Any) -> RewardConfig:
    calls = {"base_url": f"{server.url}/v1", "cache": str(cache / "replies.sqlite"), "seed": 1}
    return RewardConfig(
        judge=JudgeConfig(judge="simplified", model="mock", representation="axtree"),
        calls=CallConfig(**(calls | more.pop("calls", {}))),
        **more,
    )


def block_of(page: str, word: str) -> str:
    """The Python of a guide that holds this word."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)
    (code,) = [block for block in blocks if word in block]
    return code
