"""Offline rules of WebArena and its descendants for an answer, the last URL and stored pages.

``load_tasks`` reads a benchmark's file or your own in the same form (``rules/schema.md``),
``load_runs`` reads agents' answers, and ``WebArenaEvaluator`` returns pass, fail or unknown by the
rules of each task's dialect.
"""

from __future__ import annotations

from trajudge.rules.webarena.evaluator import AnswerQuestion, WebArenaEvaluator, evaluate_runs
from trajudge.rules.webarena.tasks import Run, StoredPage, Task, Trace, load_runs, load_tasks

__all__ = [
    "AnswerQuestion",
    "Run",
    "StoredPage",
    "Task",
    "Trace",
    "WebArenaEvaluator",
    "evaluate_runs",
    "load_runs",
    "load_tasks",
]
