"""A submission to Online-Mind2Web."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.trajectories.loaders.made import PNG, TASK

Change = Callable[[dict[str, Any]], object]
ACTIONS = (
    "page -> NAVIGATE -> open the shop | SUCCESS",
    "CLICK coords(902, 204) -> open the menu | FAILED",
    "TASK_COMPLETE -> ANSWER: Green tea.",
)


def result() -> dict[str, Any]:
    return {
        "schema_version": "online-mind2web-v2",
        "task": "Find tea.",
        "task_id": TASK,
        "agent_final_answer": "Green tea.",
        "reference_length": 4,
        "action_history": [
            {
                "step": number,
                "screenshot": f"{number:04}.png",
                "url": f"https://tea.example/{number}",
                "action": action,
                "thought": f"thought {number}",
            }
            for number, action in enumerate(ACTIONS)
        ],
    }


def submission(folder: Path, change: Change = lambda told: None) -> Path:
    """A task folder whose result was changed; ``change`` may return another one."""
    (folder / TASK / "trajectory").mkdir(parents=True)
    for number in range(3):
        (folder / TASK / "trajectory" / f"{number:04}.png").write_bytes(PNG)
    told = result()
    changed = change(told)
    content = changed if isinstance(changed, dict | list) else told
    (folder / TASK / "result.json").write_text(json.dumps(content))
    return folder
