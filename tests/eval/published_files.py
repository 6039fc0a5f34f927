"""Files of judgments in AgentRewardBench's published layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ANNOTATIONS = (
    "annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_side_effect,"
    "trajectory_optimality,trajectory_looping\n"
)


def place(folder: Path, task: int, judge: str = "judge-x") -> Path:
    return folder / "judgments" / "webarena" / "agent" / judge / f"webarena.{task}.json"


def put(folder: Path, task: int, word: str, judge: str = "judge-x", **more: Any) -> None:
    path = place(folder, task, judge)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"<reasoning>é task {task}</reasoning><success>{word}</success><side>No</side>"
    content = {
        "judge_model_name": "model-x",
        "judge_args": {"use_axtree": True, "use_screenshot": False},
        "response": {
            "choices": [{"finish_reason": "stop", "message": {"content": text}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 7},
        },
        "chat_messages": {"regular": ["x" * 30_000]},
        "trajectory_info": {"summary_info": {"cum_reward": 0.25}},
    }
    path.write_text(json.dumps(content | more))
