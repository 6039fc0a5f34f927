"""A released run of tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RUN = {
    "trajectory_id": "I-1-wrong_tool",
    "instance_id": "I-1",
    "goal": "Refund it.",
    "steps": [
        {
            "index": 0,
            "thought": "Look.",
            "call": {"tool": "find", "args": {"id": "O'1", "n": 2}},
            "observation": {"ok": True, "data": {"total": 3}},
        },
        {"index": 1, "thought": None, "call": None, "observation": None},
    ],
    "final_answer": "Done.",
    "label": {
        "faulty": True,
        "failure_step": 1,
        "failure_type": "wrong_tool",
        "outcome_correct": True,
    },
}


def written(folder: Path, runs: list[Any], verdicts: list[Any] | None = None) -> Path:
    for name, lines in (("trajectories", runs), ("verdicts", verdicts or [])):
        text = "".join(x if isinstance(x, str) else json.dumps(x) + "\n" for x in lines)
        (folder / f"{name}.jsonl").write_text(text)
    return folder
