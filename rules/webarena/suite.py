"""Original WebArena tasks, as the auditors ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rules.findings import Finding
from rules.naive_agents import TEXT_AGENTS as AGENTS
from rules.weaknesses import CATEGORIES, UNIONS, weaknesses
from rules.webarena.evaluator import WebArenaEvaluator
from rules.webarena.files import load_tasks as load
from rules.webarena.model import Task, Trace

MODES = ("original",)

__all__ = [
    "AGENTS",
    "CATEGORIES",
    "MODES",
    "UNIONS",
    "detect",
    "evaluator",
    "idle_trace",
    "lint",
    "load",
]


def detect(record: Mapping[str, Any]) -> bool:
    """Whether a task record is of this form: its ``eval`` names ``eval_types``."""
    spec = record.get("eval")
    return isinstance(spec, dict) and "eval_types" in spec


def lint(tasks: Sequence[Task]) -> Iterator[Finding]:
    """The weaknesses of the tasks."""
    return weaknesses(tasks)


def evaluator(mode: str) -> WebArenaEvaluator:
    """The original rules, without a judge model: what one would decide is unknown."""
    return {"original": WebArenaEvaluator()}[mode]


def idle_trace(task: Task) -> Trace:
    """A browser that was never used."""
    return Trace(url="about:blank")
