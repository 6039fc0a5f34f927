"""One request on its way: who asked, what was measured, and its entry in the trace."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from trajudge.proxy.efficiency.latency import Part, Span
from trajudge.proxy.http.messages import HeaderFields, RequestHead
from trajudge.proxy.http.origins import OriginAddress
from trajudge.proxy.pages.loads import RequestPurpose
from trajudge.proxy.plans.recovery import PageAnswer
from trajudge.proxy.records.har import har_request, har_response, iso_time
from trajudge.proxy.server.client import ClientConnection
from trajudge.proxy.server.tasks import PageLoad, ProxyTask


class TimedPart:
    """Adds the span of its block to ``spans``. Every request has two: a generator would take three
    times as long."""

    __slots__ = ("_part", "_spans", "_start")

    def __init__(self, spans: list[Span], part: Part) -> None:
        self._spans = spans
        self._part = part
        self._start = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._spans.append(Span(self._part, self._start, time.perf_counter()))


@dataclass(eq=False)
class ProxyExchange:
    """A request of the site and its response; ``first_byte`` is when the response began."""

    client: ClientConnection
    head: RequestHead
    body: bytes
    url: str
    target: str
    origin: OriginAddress
    kind: RequestPurpose
    task: ProxyTask
    load: PageLoad | None = None
    started: float = field(default_factory=time.perf_counter)
    spans: list[Span] = field(default_factory=list)
    first_byte: float | None = None
    status: int = -1
    reason: str = ""
    headers: HeaderFields = ()
    faults: list[str] = field(default_factory=list)
    replaced: bool = False
    error: str | None = None

    def timed(self, part: Part) -> TimedPart:
        """Count a block's time to a part."""
        return TimedPart(self.spans, part)

    def answered(self, status: int, reason: str, headers: HeaderFields) -> None:
        """Remember the head that the client gets."""
        self.status, self.reason, self.headers = status, reason, headers
        self.first_byte = time.perf_counter()

    def seconds(self, part: Part) -> float:
        """Return the seconds that were counted to a part."""
        return sum(span.end - span.start for span in self.spans if span.part == part)

    def record(self) -> None:
        """Add the request to the task's trace and, for a page load, to the log."""
        end = time.perf_counter()
        self.task.spans += [*self.spans, Span("proxy", self.started, end)]
        self.task.requests += 1
        total, size = end - self.started, self.client.sent
        self.task.entries.append(partial(self._entry, total, size, time.time() - total))
        if self.load is None:
            return
        site, injected = self.seconds("site"), self.seconds("injected")
        self.task.log.write(
            "page",
            task=self.task.id,
            k=self.load.k,
            method=self.head.method,
            url=self.url,
            status=self.status,
            certain=self.kind.certain,
            faults=self.faults,
            size=size,
            error=self.error,
            site_ms=_ms(site),
            injected_ms=_ms(injected),
            proxy_ms=_ms(total - site - injected),
        )
        self.task.answered(self._answer(self.load, end))

    def _answer(self, load: PageLoad, end: float) -> PageAnswer:
        complete = self.error is None and not self.client.gone
        return PageAnswer(
            k=load.k,
            method=self.head.method,
            url=self.url,
            status=self.status,
            faults=tuple(self.faults),
            replaced=self.replaced,
            complete=complete,
            began=self.started,
            ended=end,
        )

    def _entry(self, total: float, size: int, began: float) -> dict[str, Any]:
        wait = total if self.first_byte is None else self.first_byte - self.started
        entry = {
            "startedDateTime": iso_time(began),
            "time": _ms(total),
            "request": har_request(self.head.method, self.url, self.head.headers, self.body),
            "response": har_response(self.status, self.reason, self.headers, size),
            "cache": {},
            "timings": {"send": 0, "wait": _ms(wait), "receive": _ms(total - wait)},
            "_resourceType": self.kind.resource_type,
        }
        if self.load is not None:
            entry["_pageLoad"] = self.load.k
        if self.faults:
            entry["_faults"] = list(self.faults)
        return entry | ({"_error": self.error} if self.error else {})


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
