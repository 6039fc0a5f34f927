"""The state of a task: its page loads, the faults that are due, and what was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from trajudge.proxy.efficiency.latency import Span, split
from trajudge.proxy.efficiency.usage import USAGE_FIELDS
from trajudge.proxy.plans.faults import AssetFault, Fault
from trajudge.proxy.plans.recovery import FaultExposure, FaultRecovery, PageAnswer, RecoveryTracker
from trajudge.proxy.plans.schedule import Exposure, FaultOutcome, Schedule, exposures
from trajudge.proxy.records.events import EventLog

# A browser that meets a reset on a kept connection asks again by itself, at once.
RETRY_WINDOW = 0.5  # seconds
# How long the address that a redirect names belongs to the same page load.
REDIRECT_WINDOW = 30.0  # seconds


@dataclass(eq=False)
class PageLoad:
    """The ``k``-th page load of a task, from 1, over all its redirects; ``open`` are the faults
    that are due and have no outcome yet. ``method`` and ``url`` are those of its last request."""

    k: int
    open: list[Fault]
    method: str = ""
    url: str = ""
    again: Fault | None = None  # the reset that the browser's own repetition meets again


@dataclass(eq=False)
class ProxyTask:
    """A task that is under way. ``entries`` make those of the trace, when the task ends: no request
    waits for the trace of another."""

    schedule: Schedule
    log: EventLog
    started: float = field(default_factory=time.perf_counter)
    loads: int = 0
    uncertain: int = 0
    requests: int = 0
    refused: int = 0
    refused_hosts: set[str] = field(default_factory=set)
    tunnels: int = 0
    page: PageLoad | None = None
    spans: list[Span] = field(default_factory=list)
    entries: list[Callable[[], dict[str, Any]]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[tuple[str, int, FaultOutcome]] = field(default_factory=list)
    recovered: list[FaultRecovery] = field(default_factory=list)
    _recoveries: RecoveryTracker = field(default_factory=RecoveryTracker)
    _following: dict[str, tuple[PageLoad, float]] = field(default_factory=dict)
    _resets: dict[tuple[str, str], tuple[PageLoad, Fault, float]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.schedule.task

    def load(self, method: str, url: str, *, certain: bool) -> PageLoad:
        """Return the page load that a request for a document begins or goes on with."""
        load = self._load_of(method, url, certain=certain)
        load.method, load.url = method, url
        return load

    def _load_of(self, method: str, url: str, *, certain: bool) -> PageLoad:
        now = time.perf_counter()
        if (followed := self._following.pop(url, None)) and now < followed[1]:
            return followed[0]
        if (reset := self._resets.get((method, url))) and now < reset[2]:
            reset[0].again = reset[1]
            return reset[0]
        self.loads += 1
        self.uncertain += not certain
        self.page = PageLoad(self.loads, list(self.schedule.due(self.loads)))
        return self.page

    def follow(self, load: PageLoad, url: str) -> None:
        """Count the request for a redirect's target as a part of the same page load."""
        self._following[url] = (load, time.perf_counter() + REDIRECT_WINDOW)

    def expect_retry(self, load: PageLoad, fault: Fault, method: str, url: str) -> None:
        """Count the request that a browser repeats by itself as the same page load."""
        until = time.perf_counter() + RETRY_WINDOW
        self._resets[method, url] = (load, fault, until)
        load.again = None

    def settle(
        self,
        load: PageLoad,
        fault: Fault,
        outcome: FaultOutcome,
        url: str,
        reason: str = "",
        **details: Any,
    ) -> None:
        """Record what came of a fault at a page load."""
        if fault in load.open:
            load.open.remove(fault)
        self.outcomes.append((fault.id, load.k, outcome))
        if outcome == "fired":
            now, overlay = time.perf_counter(), str(details.get("overlay", ""))
            exposure = FaultExposure(
                fault, load.k, load.method, load.url, now, overlay, len(self.calls)
            )
            self._recoveries.add(exposure)
        self.log.write(
            "fault",
            task=self.id,
            k=load.k,
            fault=fault.id,
            kind=fault.kind,
            outcome=outcome,
            reason=reason,
            url=url,
            **details,
        )

    def popup_closed(self, overlay: str) -> None:
        """Record that an overlay was closed, as it reports itself."""
        self.log.write("popup_closed", task=self.id, k=self.loads, overlay=overlay[:40])
        self._recovered(self._recoveries.closed(overlay, self.loads, time.perf_counter()))

    def navigated(self, url: str, kind: str) -> None:
        """Record a navigation as the browser tells it."""
        self.log.write("navigation", task=self.id, k=self.loads, kind=kind, url=url)

    def answered(self, answer: PageAnswer) -> None:
        """Record what the end of a page load's request shows of earlier faults."""
        self._recovered(self._recoveries.answered(answer))

    def end(self) -> None:
        """Record the faults that nothing was recovered from."""
        self._recovered(self._recoveries.rest(time.perf_counter()))

    def _recovered(self, recoveries: Iterable[FaultRecovery]) -> None:
        for recovery in recoveries:
            exposure, calls = recovery.exposure, self.calls[recovery.exposure.calls :]
            if recovery.recovered:
                self.recovered.append(recovery)
            self.log.write(
                "recovery",
                task=self.id,
                k=exposure.k,
                fault=exposure.fault.id,
                kind=exposure.fault.kind,
                means=recovery.means,
                recovered=recovery.recovered,
                expected=exposure.fault.recovery,
                at=recovery.k,
                seconds=round(recovery.seconds, 6),
                model_calls=len(calls),
                usage={name: known_sum(calls, name) for name in USAGE_FIELDS},
            )

    def asset_fault(self, kind: str | None) -> AssetFault | None:
        """Return the fault that an asset of the current page meets."""
        if self.page is None or kind is None:
            return None
        due = self.schedule.due(self.page.k)
        failing = (fault for fault in due if isinstance(fault, AssetFault))
        return next((fault for fault in failing if kind in fault.assets), None)

    def exposures(self) -> tuple[Exposure, ...]:
        """Return what the task was exposed to so far."""
        return exposures(self.schedule, self.loads, self.outcomes)

    def summary(self) -> dict[str, Any]:
        """Return the figures of the task: those of its ``task_end`` event."""
        now = time.perf_counter()
        seconds = split(self.spans, self.started, now)
        exposed = [
            one._asdict() | {"open": one.open, "recovered": self._recovered_from(one.fault)}
            for one in self.exposures()
        ]
        return {
            "task": self.id,
            "seed": self.schedule.seed,
            "seconds": round(now - self.started, 6),
            "page_loads": self.loads,
            "uncertain_page_loads": self.uncertain,
            "requests": self.requests,
            "refused": self.refused,
            "tunnels": self.tunnels,
            "model_calls": len(self.calls),
            "failed_calls": sum(call["error"] is not None for call in self.calls),
            "calls_of_unknown_usage": sum(call["usage"] is None for call in self.calls),
            "usage": {name: known_sum(self.calls, name) for name in USAGE_FIELDS},
            "latency": {part: round(value, 6) for part, value in seconds.items()},
            "exposure": exposed,
        }

    def _recovered_from(self, fault: str) -> list[int]:
        """Return the page loads at which a fault fired and was recovered from."""
        ks = {one.exposure.k for one in self.recovered if one.exposure.fault.id == fault}
        return sorted(ks)


def known_sum(calls: list[dict[str, Any]], name: str) -> int | None:
    """Return the sum of a count over the calls that state it; None where no call does."""
    counts = [call["usage"][name] for call in calls if call["usage"]]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
