"""The screen at the end of a run, with tasks and their cost, exposure and files; and the table
of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trajudge.proxy.plan import Fault, FaultPlan, Schedule
from trajudge.util.tables import Table, folded, render, screen_width
from trajudge.util.terminal import one_line

_ROWS = 9  # of one table
_UNKNOWN = "–"
# What stands in a row of a plan's table in columns of its own.
_OWN_COLUMNS = {"id", "kind", "policy"}


def run_screen(plan: FaultPlan, tasks: Sequence[Mapping[str, Any]], out: Path, use: str) -> str:
    """Return at most 40 lines. ``use`` explains how an agent uses the proxy."""
    parts = [table for table in (_tasks(tasks), _faults(tasks, plan)) if table.rows]
    lines = [render(parts, "table"), *_times(tasks)]
    for warning in _warnings(tasks, plan, use):
        lines += folded(f"warning: {warning}", screen_width())
    files = one_line(str(out / "events.jsonl"))
    lines.append(f"written: {files}, traces/, summary.json and plan.json")
    return "\n".join(lines) + "\n"


def _tasks(tasks: Sequence[Mapping[str, Any]]) -> Table:
    head = ("task", "page loads", "requests", "model calls", "input", "output", "dollars")
    rows = [
        (
            task["task"][:40],
            str(task["page_loads"]),
            str(task["requests"]),
            str(task["model_calls"]),
            _known(task["usage"]["input"]),
            _known(task["usage"]["output"]),
            _UNKNOWN if task["dollars"] is None else f"{task['dollars']:.4f}",
            f"{task['seconds']:.2f}",
        )
        for task in tasks[:_ROWS]
    ]
    more = f" (the first {_ROWS} of {len(tasks)})" if len(tasks) > _ROWS else ""
    return Table(f"Tasks{more}", (*head, "seconds"), rows, 1)


def _known(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def _faults(tasks: Sequence[Mapping[str, Any]], plan: FaultPlan) -> Table:
    """Count planned and fired page loads by fault, over all tasks. Faults that are drawn at each
    load have no planned number."""
    drawn = {fault.id for fault in plan.faults if fault.policy.bernoulli is not None}
    columns = ("planned", "fired", "recovered", "masked", "impossible", "unreached")
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for task in tasks:
        for exposure in task["exposure"]:
            names = (exposure["fault"], exposure["kind"])
            row = counts.setdefault(names, dict.fromkeys(columns, 0))
            for column in columns:
                row[column] += len(exposure[column])
    rows = [
        (
            *names,
            f"{row['planned']}{' drawn' * (names[0] in drawn)}",
            *(str(row[column]) for column in columns[1:]),
        )
        for names, row in list(counts.items())[:_ROWS]
    ]
    more = f" (the first {_ROWS} of {len(counts)})" if len(counts) > _ROWS else ""
    return Table(f"Exposure, in page loads{more}", ("fault", "kind", *columns), rows, 2)


def _times(tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the line with the times by part."""
    seconds: dict[str, float] = {}
    for task in tasks:
        for part, value in task["latency"].items():
            seconds[part] = seconds.get(part, 0.0) + value
    if seconds:
        yield "time: " + ", ".join(f"{part} {value:.2f} s" for part, value in seconds.items())


def _warnings(tasks: Sequence[Mapping[str, Any]], plan: FaultPlan, use: str) -> Iterator[str]:
    totals = {
        name: sum(task[name] for task in tasks)
        for name in (
            *("uncertain_page_loads", "calls_of_unknown_usage", "calls_of_unknown_cost"),
            *("failed_calls", "tunnels", "page_loads", "requests", "refused", "model_calls"),
        )
    }
    if not totals["page_loads"]:
        yield _no_page_load(totals, use)
    elif plan.faults and not any(one["fired"] for task in tasks for one in task["exposure"]):
        yield f"no fault of the plan fired in {totals['page_loads']} page loads"
    if number := totals["uncertain_page_loads"]:
        yield (
            f"{number} page loads were guessed, frames may be among them: start the "
            "browser with the flags of the proxy, or let it load the site by https://"
        )
    if number := totals["calls_of_unknown_usage"]:
        yield f"{number} model calls state no usage (streams need include_usage): sums lack them"
    if number := totals["calls_of_unknown_cost"] - totals["calls_of_unknown_usage"]:
        yield f"{number} more model calls have no known price: the dollars lack them"
    if number := totals["failed_calls"]:
        yield f"{number} model calls failed"
    if number := totals["tunnels"]:
        yield f"{number} connections (WebSockets) were carried unread"


def _no_page_load(totals: Mapping[str, int], use: str) -> str:
    """Return what the proxy received instead of page loads, and how to fix it."""
    if number := totals["requests"]:
        return (
            f"no request of {number} through the proxy loads a page: only one does whose Accept "
            "names text/html, or whose Sec-Fetch-Dest is document, as a browser sends it; for an "
            "agent that is no browser give --page-requests REGEX"
        )
    if number := totals["refused"]:
        return f"the proxy refused all {number} requests: name their hosts with --site"
    calls = totals["model_calls"] or totals["tunnels"]
    return f"{'no page load' if calls else 'nothing'} came through the proxy: {use}"


def schedule_table(schedule: Schedule) -> Table:
    """Return when each fault of a plan fires in a task."""
    rows = [
        (fault.id, fault.kind, _details(fault), str(fault.policy), _ordinals(schedule, fault))
        for fault in schedule.plan.faults
    ]
    title = f"Faults of task {schedule.task!r} (seed {schedule.seed})"
    return Table(title, ("fault", "kind", "details", "policy", "page loads"), rows, 5)


def _details(fault: Fault) -> str:
    fields = fault.model_dump(exclude=_OWN_COLUMNS, exclude_none=True)
    return ", ".join(f"{name} {_text(value)}" for name, value in fields.items())


def _text(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _ordinals(schedule: Schedule, fault: Fault) -> str:
    ordinals = schedule.planned(fault)
    return "drawn at each" if ordinals is None else ", ".join(map(str, ordinals))
