"""Lines of answers."""

from __future__ import annotations

import json


def answer_line(task: str, score: object = 100, answer: str | None = "**Done** ✅") -> str:
    judge = {"score": score, "reasoning": "It says so."}
    row = {"task_id": task, "task": "Find it.", "final_result_response": answer, "judge": judge}
    return json.dumps(row) + "\n"
