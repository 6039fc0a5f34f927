"""One screen on a run: what its tasks met, what they cost, where the files are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajudge.proxy.agents import ProxyRun
from trajudge.proxy.browser.probing import never
from trajudge.proxy.plans.plan import FaultPlan
from trajudge.proxy.server.settings import ProxySettings
from trajudge.util.tables import Table, folded, render, screen_width
from trajudge.util.terminal import one_line

_ROWS = 9  # of one table
_UNKNOWN = "–"


def run_screen(settings: ProxySettings, run: ProxyRun, use: str) -> str:
    """Return at most 40 lines. ``use`` says how an agent is made to use the proxy."""
    tasks, out = run.tasks, settings.out
    parts = [table for table in (_tasks(tasks), _faults(tasks, settings.plan)) if table.rows]
    lines = [render(parts, "table"), *_costs(tasks)]
    absent = [] if run.unwatched is None else [never(run.unwatched)]
    for warning in (*absent, *_warnings(tasks, use)):
        lines += folded(f"warning: {warning}", screen_width())
    if out is not None:
        files = one_line(str(out / "events.jsonl"))
        lines.append(f"written: {files}, traces/, summary.json and plan.json")
    return "\n".join(lines) + "\n"


def _tasks(tasks: Sequence[dict[str, Any]]) -> Table:
    head = ("task", "page loads", "requests", "model calls", "input", "output", "seconds")
    rows = [
        (
            task["task"][:40],
            str(task["page_loads"]),
            str(task["requests"]),
            str(task["model_calls"]),
            _known(task["usage"]["input"]),
            _known(task["usage"]["output"]),
            f"{task['seconds']:.2f}",
        )
        for task in tasks[:_ROWS]
    ]
    more = f" (the first {_ROWS} of {len(tasks)})" if len(tasks) > _ROWS else ""
    return Table(f"Tasks{more}", head, rows, 1)


def _known(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def _faults(tasks: Sequence[dict[str, Any]], plan: FaultPlan) -> Table:
    """Count planned and fired page loads per fault, over all tasks. What is drawn at each load was
    not planned before: 0 of it says nothing of the plan."""
    drawn = {fault.id for fault in plan.faults if fault.policy.bernoulli is not None}
    columns = ("planned", "fired", "recovered", "masked", "impossible", "unreached")
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for task in tasks:
        for exposure in task["exposure"]:
            row = counts.setdefault(
                (exposure["fault"], exposure["kind"]), dict.fromkeys(columns, 0)
            )
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


def _costs(tasks: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say where the time went, and how many calls cost an unknown number of tokens."""
    seconds: dict[str, float] = {}
    for task in tasks:
        for part, value in task["latency"].items():
            seconds[part] = seconds.get(part, 0.0) + value
    if seconds:
        yield "time: " + ", ".join(f"{part} {value:.2f} s" for part, value in seconds.items())


def _warnings(tasks: Sequence[dict[str, Any]], use: str) -> Iterator[str]:
    totals = {
        name: sum(task[name] for task in tasks)
        for name in (
            *("uncertain_page_loads", "calls_of_unknown_usage", "failed_calls", "tunnels"),
            *("page_loads", "requests", "refused", "model_calls"),
        )
    }
    if not totals["page_loads"]:
        yield _no_page_load(totals, use)
    if number := totals["uncertain_page_loads"]:
        yield (
            f"{number} page loads were guessed, frames may be among them: serve the site below "
            "*.localhost"
        )
    if number := totals["calls_of_unknown_usage"]:
        yield f"{number} model calls state no usage (streams need include_usage): sums lack them"
    if number := totals["failed_calls"]:
        yield f"{number} model calls failed"
    if number := totals["tunnels"]:
        yield f"{number} connections (WebSockets) were carried unread"


def _no_page_load(totals: Mapping[str, int], use: str) -> str:
    """Say what came instead of page loads, and what to change."""
    if number := totals["requests"]:
        return (
            f"no request of {number} through the proxy loads a page: only one does whose Accept "
            "names text/html, or whose Sec-Fetch-Dest is document, as a browser sends it"
        )
    if number := totals["refused"]:
        return (
            f"the proxy refused all {number} requests: name their hosts with --site, and take "
            "--backend mitm for https://"
        )
    calls = totals["model_calls"] or totals["tunnels"]
    return f"{'no page load' if calls else 'nothing'} came through the proxy: {use}"
