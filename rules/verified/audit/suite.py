"""Tasks of WebArena Verified, as the auditors ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajudge.rules.blind.agents import RESPONSE_AGENTS
from trajudge.rules.suites import Suite
from trajudge.rules.values import Mode
from trajudge.rules.verified.audit.cases import SOUND_WITH_ACTIVITY, evaluator_of, mutation_suite
from trajudge.rules.verified.audit.linter import CATEGORIES, UNIONS, lint
from trajudge.rules.verified.dataset import Task, load_tasks
from trajudge.rules.verified.network.events import Trace
from trajudge.rules.verified.network.read import trace_of_list
from trajudge.rules.verified.network.sites import DEFAULT_PORTS

_EVALUATORS = ("AgentResponseEvaluator", "NetworkEventEvaluator", "BackendStateEvaluator")

# Where agents that look at nothing have not been.
_HOSTS = {name: (f"http://site.invalid:{port}",) for name, port in DEFAULT_PORTS.items()}


def _detect(record: Mapping[str, Any]) -> bool:
    """Its ``eval`` is a list of named evaluators."""
    spec = record.get("eval")
    return (
        isinstance(spec, list)
        and bool(spec)
        and all(isinstance(check, dict) and check.get("evaluator") in _EVALUATORS for check in spec)
    )


def _idle_trace(task: Task) -> Trace:
    """Return a browser that was opened on a blank page of another host and never used."""
    page = {
        "request": {"method": "GET", "url": "http://idle.invalid/", "headers": []},
        "response": {"status": 200},
    }
    return trace_of_list([page], "idle")


SUITE = Suite(
    kind="verified",
    detect=_detect,
    load=load_tasks,
    lint=lint,
    categories=CATEGORIES,
    unions=UNIONS,
    modes=(Mode.SOUND.value, SOUND_WITH_ACTIVITY, Mode.RELEASE.value),
    agents=RESPONSE_AGENTS,
    evaluator=lambda mode: evaluator_of(mode, _HOSTS),
    idle_trace=_idle_trace,
    mutations=mutation_suite,
)
