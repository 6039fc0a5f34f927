"""Tasks of WebArena and runs to evaluate."""

from __future__ import annotations

from typing import Any


def task_of(task_id: int, **references: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"eval_types": ["string_match"], "reference_answers": references}
    return {
        "task_id": task_id,
        "intent": "How many?",
        "sites": ["shopping"] if task_id < 3 else ["reddit"],
        "intent_template_id": task_id % 2,
        "eval": spec,
    }


ADDRESS = {"eval_types": ["url_match"], "reference_url": "__REDDIT__/f/tea"}
TASKS = [
    task_of(1, exact_match="3"),
    task_of(2, must_include=["red", "green"]),
    task_of(3, fuzzy_match=["three"]),
    {"task_id": 4, "intent": "Go.", "sites": ["reddit"], "eval": ADDRESS},
    task_of(5, fuzzy_match="N/A"),
]
RUNS: list[dict[str, Any]] = [
    {"task_id": 1, "answer": "3"},
    {"task_id": 2, "answer": "red only"},
    {"task_id": 3, "answer": "3"},
    {"task_id": 4, "trace": {"url": "http://forum.test/f/tea"}},
]
