"""Compute the results of a task from its records: recovery, exposure, usage, latency, and its
trace.

Everything here is a function of the addon's records: events in order, and a line per request of the
site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlsplit

from trajudge.judges.model import Usage
from trajudge.judges.models import listed_price
from trajudge.proxy.addon import USAGE_FIELDS
from trajudge.proxy.plan import Fault, FaultPlan, OfflineFault, Schedule, SessionFault

RecoveryMeans = Literal["dismissed", "reloaded", "waited", "left", "none"]
"""``dismissed``: the overlay was closed. ``reloaded``: the same address was loaded again, by the
same method, and the site answered. ``waited``: the page came while the agent waited. ``left``: only
other pages were loaded after the fault. ``none``: no page came any more."""
RECOVERED: tuple[RecoveryMeans, ...] = ("dismissed", "reloaded", "waited")

Part = Literal["model", "injected", "site", "proxy"]
PARTS: tuple[Part, ...] = get_args(Part)

Record = Mapping[str, Any]

_EARLY = 0.25  # seconds by which a browser's own reload may come before its time


# Recovery.


@dataclass(eq=False)
class _Exposed:
    """A fault that fired and has no record yet; ``calls``: the task's model calls before it."""

    fault: Fault
    event: Record
    calls: int
    left: bool = False


def recoveries(plan: FaultPlan, events: Iterable[Record]) -> list[dict[str, Any]]:
    """Return one ``recovery`` record for each fault that fired, from the events of a task in
    order: at the first event that shows the recovery, else at the task's end."""
    faults = {fault.id: fault for fault in plan.faults}
    exposed: list[_Exposed] = []
    calls: list[Record] = []
    recorded: list[dict[str, Any]] = []

    def settle(one: _Exposed, means: RecoveryMeans, k: int | None, now: float) -> None:
        exposed.remove(one)
        recorded.append(_recovery(one, means, k, now, calls[one.calls :]))

    for event in events:
        kind = event["type"]
        if kind == "model":
            calls.append(event)
        elif kind == "fault" and event["outcome"] == "fired":
            exposed.append(_Exposed(faults[event["fault"]], event, len(calls)))
        elif kind == "popup_closed":
            for one in list(exposed):
                if one.event.get("overlay") == event["overlay"]:
                    settle(one, "dismissed", event["k"], event["t"])
        elif kind == "page":
            for one in list(exposed):
                means = _shown(one, event)
                one.left = one.left or means == "left"
                if means in RECOVERED:
                    settle(one, means, event["k"], event["t"])
        elif kind == "ended":
            for one in list(exposed):
                settle(one, "left" if one.left else "none", None, event["t"])
    return recorded


def _shown(exposed: _Exposed, page: Record) -> RecoveryMeans:
    """Return the kind of recovery that the end of a page load shows, ``none`` if it shows none."""
    fault, fired = exposed.fault, exposed.event
    complete = page["error"] is None
    if page["k"] == fired["k"]:
        held = fault.kind == "delay" and fault.id in page["faults"]
        return "waited" if held and complete else "none"
    by_the_site = complete and not page["replaced"] and 200 <= page["status"] < 400
    if not by_the_site or fault.id in page["faults"]:
        return "none"
    if (page["method"], page["url"]) != (fired["method"], fired["url"]):
        return "left"
    if isinstance(fault, SessionFault) and page["status"] >= 300:
        return "none"  # the site itself asks for a login
    if isinstance(fault, OfflineFault) and fault.retry_seconds is not None:
        waited = page["began"] - fired["t"] >= fault.retry_seconds - _EARLY
        return "waited" if waited else "reloaded"
    return "reloaded"


def _recovery(
    exposed: _Exposed, means: RecoveryMeans, k: int | None, now: float, calls: Sequence[Record]
) -> dict[str, Any]:
    return {
        "k": exposed.event["k"],
        "fault": exposed.fault.id,
        "kind": exposed.fault.kind,
        "means": means,
        "recovered": means in RECOVERED,
        "expected": exposed.fault.recovery,
        "at": k,
        "seconds": round(max(0.0, now - exposed.event["t"]), 6),
        "model_calls": len(calls),
        "usage": {name: known_sum(calls, name) for name in USAGE_FIELDS},
    }


# Exposure.


def exposure(
    schedule: Schedule, loads: int, outcomes: Iterable[tuple[str, int, str]]
) -> list[dict[str, Any]]:
    """Return the exposure of a task of ``loads`` page loads by fault, from (fault, ordinal,
    outcome).

    ``planned`` are the ordinals of a policy with an end, else of the page loads that the task
    reached; ``unreached``: the task ended first; ``open``: reached without an outcome, such as by a
    load that ended before its fault.
    """
    by_outcome: dict[tuple[str, str], set[int]] = {}
    for name, ordinal, outcome in outcomes:
        by_outcome.setdefault((name, outcome), set()).add(ordinal)
    exposed = []
    for fault in schedule.plan.faults:
        planned = schedule.planned(fault)
        if planned is None:
            planned = tuple(k for k in range(1, loads + 1) if schedule.is_due(fault, k))
        came = {
            outcome: sorted(by_outcome.get((fault.id, outcome), ()))
            for outcome in ("fired", "masked", "impossible")
        }
        came["unreached"] = [k for k in planned if k > loads]
        closed = {k for ks in came.values() for k in ks}
        still = [k for k in planned if k not in closed]
        exposed.append(
            {"fault": fault.id, "kind": fault.kind, "planned": list(planned), **came, "open": still}
        )
    return exposed


# Cost.


def known_sum(calls: Iterable[Record], name: str) -> int | None:
    """Return the sum of a count over the calls that report it; None if none does."""
    counts = [call["usage"][name] for call in calls if call["usage"]]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def dollars(call: Record) -> float | None:
    """Return the cost of a call by the price table; None for an unknown price, or for a call
    that reports neither prompt nor reply tokens."""
    usage = call["usage"]
    if not usage or usage["input"] is None or usage["output"] is None:
        return None
    counted = Usage(**{name: usage[name] or 0 for name in USAGE_FIELDS})
    return listed_price(call["model"] or "").cost(counted)


# Latency.


def split(spans: Iterable[tuple[str, float, float]], start: float, end: float) -> dict[str, float]:
    """Return seconds by part, and of the ``agent``, between ``start`` and ``end``, from spans
    (part, start, end), which are clipped. The five parts sum to the total.

    Each moment counts for one part, also when requests overlap: for the model during a call; else
    as injected while a fault delays a request; else for the site, else for the proxy.
    """
    edges: list[tuple[float, int, str]] = []
    for part, begun, ended in spans:
        first, last = max(begun, start), min(ended, end)
        if last > first:
            edges += [(first, 1, part), (last, -1, part)]
    edges.sort(key=lambda edge: edge[0])
    seconds: dict[str, float] = dict.fromkeys((*PARTS, "agent"), 0.0)
    under_way: dict[str, int] = dict.fromkeys(PARTS, 0)
    moment = start
    for at, change, part in edges:
        owner = next((part for part in PARTS if under_way[part]), "agent")
        seconds[owner] += at - moment
        moment = at
        under_way[part] += change
    seconds["agent"] += max(0.0, end - moment)
    return seconds


def _spans(events: Iterable[Record], requests: Iterable[Record]) -> Iterator[Any]:
    for request in requests:
        yield from request["spans"]
    for call in events:
        if call["type"] == "model":
            began = call["t"] - call["duration_ms"] / 1000
            yield "proxy", began, call["t"]
            yield "model", began + call["proxy_ms"] / 1000, call["t"]


# A task.


def task_results(
    plan: FaultPlan, events: Sequence[Record], requests: Sequence[Record], ended: Record
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the ``recovery`` records of a task and its figures, from its events (the first is
    ``task``), its requests, and the addon's counts at its end."""
    task = events[0]
    schedule = Schedule(plan, task["task"], task["seed"], task["horizon"])
    closing = {"type": "ended", "t": ended["ended"]}
    recovered = recoveries(plan, [*events, closing])
    calls = [event for event in events if event["type"] == "model"]
    certain = {e["k"]: e["certain"] for e in reversed(events) if e["type"] == "page"}
    loads = max(certain, default=0)
    outcomes = [(e["fault"], e["k"], e["outcome"]) for e in events if e["type"] == "fault"]
    exposed = exposure(schedule, loads, outcomes)
    for one in exposed:
        ks = {r["k"] for r in recovered if r["fault"] == one["fault"] and r["recovered"]}
        one["recovered"] = sorted(ks)
    costs = [dollars(call) for call in calls]
    known = [cost for cost in costs if cost is not None]
    parts = split(_spans(events, requests), ended["started"], ended["ended"])
    return recovered, {
        "task": task["task"],
        "seed": task["seed"],
        "seconds": round(ended["ended"] - ended["started"], 6),
        "page_loads": loads,
        "uncertain_page_loads": sum(not one for one in certain.values()),
        "requests": len(requests),
        "refused": ended["refused"],
        "tunnels": ended["tunnels"],
        "model_calls": len(calls),
        "failed_calls": sum(call["error"] is not None for call in calls),
        "calls_of_unknown_usage": sum(call["usage"] is None for call in calls),
        "usage": {name: known_sum(calls, name) for name in USAGE_FIELDS},
        "dollars": sum(known) if known else None,
        "calls_of_unknown_cost": len(costs) - len(known),
        "latency": {part: round(value, 6) for part, value in parts.items()},
        "exposure": exposed,
    }


# The trace.


def har(requests: Iterable[Record]) -> dict[str, Any]:
    """Return the requests of a task as HAR 1.2, by start: complete requests, responses without
    bodies. The records have no cookies or credentials."""
    ordered = sorted(requests, key=lambda request: request["began"])
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "trajudge proxy", "version": "1"},
            "pages": [],
            "entries": [_entry(request) for request in ordered],
        }
    }


def _entry(request: Record) -> dict[str, Any]:
    milliseconds = {name: round(1000 * request[name], 3) for name in ("seconds", "wait")}
    receive = round(milliseconds["seconds"] - milliseconds["wait"], 3)
    query = parse_qsl(urlsplit(request["url"]).query, keep_blank_values=True)
    sent: dict[str, Any] = {
        "method": request["method"],
        "url": request["url"],
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(request["headers"]),
        "queryString": _pairs(query),
        "headersSize": -1,
        "bodySize": request["body_size"],
    }
    if request["body_size"]:
        kind = _header(request["headers"], "content-type")
        sent["postData"] = {"mimeType": kind, "text": request["body"]}
    headers = request["response_headers"]
    kind = _header(headers, "content-type")
    entry = {
        "startedDateTime": datetime.fromtimestamp(request["began"], UTC).isoformat(),
        "time": milliseconds["seconds"],
        "request": sent,
        "response": {
            "status": request["status"],
            "statusText": request["reason"],
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": _pairs(headers),
            "content": {"size": request["size"], "mimeType": kind},
            "redirectURL": _header(headers, "location"),
            "headersSize": -1,
            "bodySize": request["size"],
        },
        "cache": {},
        "timings": {"send": 0, "wait": milliseconds["wait"], "receive": receive},
        "_resourceType": request["type"],
    }
    marks = {"_pageLoad": request["k"], "_faults": request["faults"], "_error": request["error"]}
    return entry | {name: value for name, value in marks.items() if value}


def _pairs(pairs: Iterable[Sequence[str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


def _header(pairs: Iterable[Sequence[str]], wanted: str) -> str:
    return next((value for name, value in pairs if name.lower() == wanted), "")
