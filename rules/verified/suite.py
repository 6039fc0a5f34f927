"""Tasks of WebArena Verified, as the auditors ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.naive_agents import RESPONSE_AGENTS as AGENTS
from rules.values import Mode
from rules.verified.dataset import Task
from rules.verified.dataset import load_tasks as load
from rules.verified.evaluator import VerifiedEvaluator
from rules.verified.linter import CATEGORIES, UNIONS, lint
from rules.verified.network.events import Trace
from rules.verified.network.read import trace_of_list
from rules.verified.network.sites import DEFAULT_PORTS

SOUND_WITH_ACTIVITY = "sound-activity"
MODES = (Mode.SOUND.value, SOUND_WITH_ACTIVITY, Mode.RELEASE.value)
_EVALUATORS = ("AgentResponseEvaluator", "NetworkEventEvaluator", "BackendStateEvaluator")

# Where agents that look at nothing have not been.
_HOSTS = {name: (f"http://site.invalid:{port}",) for name, port in DEFAULT_PORTS.items()}

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
    """Whether a task record is of this form: its ``eval`` is a list of named evaluators."""
    spec = record.get("eval")
    return (
        isinstance(spec, list)
        and bool(spec)
        and all(isinstance(check, dict) and check.get("evaluator") in _EVALUATORS for check in spec)
    )


def evaluator(mode: str) -> VerifiedEvaluator:
    """The evaluator of a mode; ``sound-activity`` asks for a visit to the site besides."""
    if mode == SOUND_WITH_ACTIVITY:
        return VerifiedEvaluator(hosts=_HOSTS, activity=True)
    return VerifiedEvaluator(mode=Mode(mode), hosts=_HOSTS)


def idle_trace(task: Task) -> Trace:
    """A browser that was opened on a blank page of another host and never used."""
    page = {
        "request": {"method": "GET", "url": "http://idle.invalid/", "headers": []},
        "response": {"status": 200},
    }
    return trace_of_list([page], "idle")
