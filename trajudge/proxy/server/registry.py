"""The tasks under way, one per port, and what is written when they end."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from trajudge.proxy.plans.schedule import Schedule
from trajudge.proxy.records.events import FORMAT, EventLog
from trajudge.proxy.records.har import write_har
from trajudge.proxy.server.settings import ProxySettings
from trajudge.proxy.server.tasks import ProxyTask

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class TaskRegistry:
    """Begins and ends tasks. A port whose task was not named begins one at its first request."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        path = None if settings.out is None else settings.out / "events.jsonl"
        self.log = EventLog(path)
        self.summaries: list[dict[str, Any]] = []
        self._current: dict[int, ProxyTask] = {}
        self._names: Counter[str] = Counter()
        plan = settings.plan
        hosts = [site.host for site in settings.sites.hosts]
        self.log.write(
            "proxy",
            format=FORMAT,
            nonce=settings.nonce,
            plan=plan.digest,
            seed=settings.seed,
            sites=hosts,
            apis=[api.name for api in settings.apis],
        )

    def current(self, port: int) -> ProxyTask:
        """Return the task of a port."""
        return self._current.get(port) or self.begin(port, self.settings.task)

    def begin(
        self, port: int, task: str, seed: int | None = None, horizon: int | None = None
    ) -> ProxyTask:
        """End the port's task, if there is one, and begin another."""
        self.end(port)
        seed = self.settings.seed if seed is None else seed
        horizon = self.settings.horizon if horizon is None else horizon
        begun = ProxyTask(Schedule(self.settings.plan, task, seed, horizon), self.log)
        self._current[port] = begun
        planned = {fault.id: begun.schedule.planned(fault) for fault in self.settings.plan.faults}
        self.log.write("task", task=task, seed=seed, port=port, planned=planned)
        return begun

    def begin_at(self, port: int, method: str, url: str) -> None:
        """Begin a task where a page load matches the boundary."""
        boundary = self.settings.boundary
        found = boundary.search(f"{method} {url}") if boundary else None
        if found:
            number = 1 + len(self.summaries) + (port in self._current)
            named = found[1] if found.re.groups else None
            self.begin(port, named or f"{self.settings.task}-{number}")

    def end(self, port: int) -> dict[str, Any] | None:
        """End the port's task and write its trace; return its figures."""
        ended = self._current.pop(port, None)
        if ended is None:
            return None
        ended.end()
        summary = ended.summary()
        if self.settings.out is not None:
            summary["trace"] = self._trace_name(ended.id)
            entries = [entry() for entry in ended.entries]
            write_har(self.settings.out / summary["trace"], entries)
        self.summaries.append(summary)
        self.log.write("task_end", **summary)
        return summary

    def _trace_name(self, task: str) -> str:
        """Return a name of its own for a trace: tasks may be named alike, or beyond what a file
        name holds."""
        stem = _UNSAFE.sub("_", task)[:80] or "task"
        self._names[stem] += 1
        number = self._names[stem]
        return f"traces/{stem}.har" if number == 1 else f"traces/{stem}-{number}.har"

    def close(self) -> None:
        """End all tasks and the log."""
        for port in list(self._current):
            self.end(port)
        self.log.write("end", tasks=len(self.summaries))
        self.log.close()
