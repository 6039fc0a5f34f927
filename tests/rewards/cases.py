"""Small trajectories, settings of a judge at the loopback server, and its calibration in a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.llm_server import LlmServer
from trajudge.eval.analysis.calibration import Calibration
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


def calibration_file(path: Path, judge: str, facts: dict[str, object]) -> Path:
    bins = {"n": 10, "calibration_error": 0.1, "brier": 0.2, "bins": []}
    one = Calibration.model_validate(
        {
            "judge": judge,
            "map": {"method": "verdict", "scores": (0, 1), "values": (0.25, 0.75)},
            **{"fitted_on": 100, "left_out": 0, "raw": bins, "calibrated": bins},
            "configuration": {"judge": judge, "facts": facts},
        }
    )
    path.write_text(f'{{"calibrations": [{one.model_dump_json()}]}}', encoding="utf-8")
    return path


def calibrated_words(folder: Path, base_rate: float) -> list[str]:
    """Write a calibration that knows this base rate; return a server's options for its judge."""
    path = calibration_file(folder / "map.json", "simplified-axtree:mock", {"model": "mock"})
    whole = json.loads(path.read_text())
    bin_ = {"low": 0, "high": 0.1, "n": 10, "tasks": 5, "mean_score": 0, "rate": base_rate}
    whole["calibrations"][0]["raw"]["bins"] = [{**bin_, "rate_low": None, "rate_high": None}]
    path.write_text(json.dumps(whole))
    return ["--model", "mock", "--representation", "axtree", "--calibration-file", str(path)]
