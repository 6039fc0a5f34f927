"""Tasks of WebArena Verified, as the auditors ask for them."""

from __future__ import annotations

from functools import partial
from typing import Any

from trajudge.rules.audit.agents import RESPONSE_AGENTS
from trajudge.rules.audit.suites import Suite
from trajudge.rules.audit.verified.cases import SOUND_WITH_ACTIVITY, evaluator_of, mutation_suite
from trajudge.rules.audit.verified.linter import CATEGORIES, UNIONS, lint
from trajudge.rules.dialects import Dialect
from trajudge.rules.values import Mode
from trajudge.rules.verified.dataset import Task, load_tasks, placeholder
from trajudge.rules.verified.network.events import Trace
from trajudge.rules.verified.network.read import trace_of_list
from trajudge.rules.verified.network.sites import DEFAULT_PORTS, FOLDERS

# Where agents that look at nothing have not been.
_HOSTS = {
    name: (f"http://site.invalid:{port}{FOLDERS.get(name, '')}",)
    for name, port in DEFAULT_PORTS.items()
}


def _idle_trace(task: Task) -> Trace:
    """Return a browser that was opened on a blank page of another host and never used."""
    return trace_of_list([_page_load("http://idle.invalid/")], "idle")


def _start_trace(task: Task) -> Trace:
    """Return a browser that loaded the pages that the task starts on, in their order."""
    pages = []
    for start in task.start_urls or (placeholder(site) for site in task.sites):
        name = start.partition("/")[0]
        address = _HOSTS.get(name, (name,))[0]
        pages.append(_page_load(start.replace(name, address)))
    return trace_of_list(pages, "start page")


def _page_load(url: str) -> dict[str, Any]:
    headers = [{"name": "accept", "value": "text/html,application/xhtml+xml"}]
    return {
        "request": {"method": "GET", "url": url, "headers": headers},
        "response": {"status": 200},
    }


def suite(row: Dialect) -> Suite:
    """Return the suite of WebArena Verified's tasks."""
    return Suite(
        dialect=row.name,
        load=partial(load_tasks, keep_flawed=True),
        lint=lint,
        categories=CATEGORIES,
        unions=UNIONS,
        modes=(Mode.SOUND.value, SOUND_WITH_ACTIVITY, Mode.RELEASE.value),
        agents=RESPONSE_AGENTS,
        evaluator=lambda mode: evaluator_of(mode, _HOSTS),
        idle_trace=_idle_trace,
        start_trace=_start_trace,
        mutations=mutation_suite,
    )
