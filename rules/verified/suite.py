"""Tasks of WebArena Verified, as the auditors ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.naive_agents import RESPONSE_AGENTS as AGENTS
from rules.values import Mode
from rules.verified.dataset import Task, placeholder
from rules.verified.dataset import load_tasks as load
from rules.verified.evaluator import VerifiedEvaluator
from rules.verified.linter import CATEGORIES, UNIONS, lint
from rules.verified.network.events import Trace
from rules.verified.network.read import trace_of_list
from rules.verified.synthesis import hosts_for

SOUND_WITH_ACTIVITY = "sound-activity"
MODES = (Mode.SOUND.value, SOUND_WITH_ACTIVITY, Mode.RELEASE.value)

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
    return isinstance(spec, list) and all(
        isinstance(check, dict) and "evaluator" in check for check in spec
    )


def evaluator(mode: str) -> VerifiedEvaluator:
    """The evaluator of a mode; ``sound-activity`` asks for a visit to the site besides."""
    if mode == SOUND_WITH_ACTIVITY:
        return VerifiedEvaluator(activity=True)
    return VerifiedEvaluator(mode=Mode(mode))


def idle_trace(task: Task) -> Trace:
    """A browser that was opened on a blank page of another host and never used."""
    page = {
        "request": {"method": "GET", "url": "http://idle.invalid/", "headers": []},
        "response": {"status": 200},
    }
    return trace_of_list([page], "idle")


def opened_trace(task: Task) -> Trace:
    """A browser that showed the start page of every site and was not used further."""
    accept = [{"name": "accept", "value": "text/html"}]
    hosts = hosts_for(task)
    pages = [
        {
            "request": {"method": "GET", "url": hosts[placeholder(site)][0], "headers": accept},
            "response": {"status": 200},
        }
        for site in task.sites
    ]
    return trace_of_list(pages, "opened")
