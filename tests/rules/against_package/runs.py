"""Runs to judge: honest ones, changed ones, and ones that have nothing to do with their task."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from tests.rules.against_package.changes import ANSWER_CHANGES, REQUEST_CHANGES
from trajudge.rules.audit.blind import RESPONSE_AGENTS
from trajudge.rules.audit.verified import SyntheticRun, synthesise
from trajudge.rules.values import Mode
from trajudge.rules.verified.network import DEFAULT_PORTS, FOLDERS
from trajudge.rules.verified.tasks import Task, placeholder

Tasks = dict[int, Task]
Case = dict[str, Any]

HOSTS = {
    name: [
        f"http://{name.strip('_').lower().replace('_', '-')}.example:{port}{FOLDERS.get(name, '')}"
    ]
    for name, port in DEFAULT_PORTS.items()
}
"""Where the synthesiser puts the sites."""

_TEXTS: list[Any] = ["yes", "N/A", "0", "", None, "done", [], {}, "{}", "null", 0]


class Runs:
    """Draws runs of the given tasks; the honest run of a task is made when it is first needed."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.ids = list(tasks)
        self._made: dict[int, SyntheticRun | None] = {}

    def honest(self, task_id: int) -> Case:
        """Return the run that the task's specification asks for, or just a visit to its sites."""
        if task_id not in self._made:
            self._made[task_id] = synthesise(self.tasks[task_id], Mode.RELEASE).run
        run = self._made[task_id]
        if run is None:
            return self.case(task_id, None, self.visit(task_id))
        return self.case(task_id, run.answer, list(run.entries))

    def case(self, task_id: int, answer: Any, entries: list[Case]) -> Case:
        """Return a run as the worker reads it."""
        return {"task_id": task_id, "answer": answer, "entries": entries, "hosts": HOSTS}

    def visit(self, task_id: int) -> list[Case]:
        """Return the start pages of a task's sites."""
        headers = [{"name": "accept", "value": "text/html"}]
        return [
            {
                "request": {
                    "method": "GET",
                    "url": HOSTS[placeholder(site)][0] + "/",
                    "headers": headers,
                },
                "response": {"status": 200, "headers": [], "cookies": [], "content": {}},
            }
            for site in self.tasks[task_id].sites
        ]

    def foreign(self, rng: Generator) -> Case:
        """Return a run that a naive agent or another task's agent might leave."""
        task_id = self._task(rng)
        case = self.honest(task_id)
        other = self.honest(self._task(rng))
        task = self.tasks[task_id]
        answer = _pick([_pick(_TEXTS, rng), _pick(RESPONSE_AGENTS, rng).answer(task)], rng)
        case["answer"] = _pick([case["answer"], other["answer"], answer, answer], rng)
        case["entries"] = _pick([case["entries"], other["entries"], self.visit(task_id)], rng)
        if rng.random() < 0.2:
            case["hosts"] = {}
        return case

    def changed(self, rng: Generator, most: int) -> Case:
        """Return an honest run with one to ``most`` changes; their names are in ``changes``."""
        case = self.honest(self._task(rng))
        names = []
        for _ in range(int(rng.integers(1, most + 1))):
            if rng.random() < 0.4:
                name = _pick(list(ANSWER_CHANGES), rng)
                case["answer"] = ANSWER_CHANGES[name](case["answer"], rng)
            else:
                name = _pick(list(REQUEST_CHANGES), rng)
                case["entries"] = REQUEST_CHANGES[name](case["entries"], rng)
            names.append(name)
        if rng.random() < 0.05:
            case["hosts"] = {}
        return {**case, "changes": names}

    def _task(self, rng: Generator) -> int:
        return self.ids[int(rng.integers(len(self.ids)))]


def _pick(options: Any, rng: Generator) -> Any:
    return options[int(rng.integers(len(options)))]
