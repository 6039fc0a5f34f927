"""The results as tables, and the first screen."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from trajudge.eval.reporting.sentences import UNDEFINED, percent, with_limits
from trajudge.eval.resilience.reading import CLEAN, LATENCY_PARTS, read_experiment
from trajudge.eval.resilience.results import (
    LEVELS,
    ArmCost,
    ArmMeasures,
    IntervalEstimate,
    JudgedArm,
    PopupFactor,
    ResilienceResults,
    plot_retention,
    results_of,
    write_results,
)
from trajudge.eval.resilience.settings import ResilienceConfig
from trajudge.util.commands import FAILURES, OK
from trajudge.util.tables import Table, first_screen, folded, print_tables, screen_width

ALL = "all agents"
_SMALLEST = 0.001  # a p-value below is shown as such


def screen(results: ResilienceResults, *, rest: str, width: int | None = None) -> str:
    """Lay out what faults did, all agents together, then agent by agent, in one screen."""
    whole = _whole(results.measures)
    worst = min(
        (row for row in whole if row.retention[0] is not None),
        key=lambda row: row.retention[0] or 0.0,
        default=None,
    )
    above = ["No pair of runs has known outcomes: nothing to compare"]
    if worst:
        kept = f"{interval_cell(worst.retention)} % of the success without faults is retained"
        counts = f"({worst.pairs} pairs of {worst.tasks} tasks, 95 % intervals)"
        costs = (worst.retention[0] or 0.0) < 1
        above = [
            f"{worst.arm} costs most: {kept} {counts}"
            if costs
            else f"No fault lowers success: with {worst.arm} {kept} {counts}"
        ]
    shown = [_fault_table(whole), *_agent_tables(results), _popup_table(results.popups)]
    tables = [table for table in [*shown, _judge_table(results.judged)] if table and table.rows]
    return first_screen(above, tables, warnings=results.notes, rest=rest, width=width)


def all_tables(results: ResilienceResults) -> list[Table]:
    """Return every table: faults by agent, costs to recover, the paper's two, popups, judges."""
    found = [
        _fault_table(results.measures, agents=True),
        _extra_table(results.measures),
        *paper_tables(results.costs),
        _popup_table(results.popups),
        _judge_table(results.judged),
    ]
    return [table for table in found if table and table.rows]


def _whole(rows: Sequence[ArmMeasures]) -> list[ArmMeasures]:
    """Return the rows of all agents, or those of the only one."""
    return [row for row in rows if not row.agent] or list(rows)


def _fault_table(rows: Sequence[ArmMeasures], *, agents: bool = False) -> Table:
    cells = [
        (
            row.arm,
            row.kind,
            str(row.pairs),
            percent(row.clean[0]),
            percent(row.faulted[0]),
            interval_cell(row.retention),
            f"{row.exposed}/{row.pairs}",
            interval_cell(row.recovery),
            percent(row.kept[0]),
            p_value(row.p_value),
        )
        for row in rows
    ]
    head = (
        *("fault", "kind", "pairs", "clean", "faulted", "retention [95 %]", "exposed"),
        *("recovered [95 %]", "kept", "McNemar p"),
    )
    title = "Success without and with faults (%)"
    if not agents:
        # A screen has no room for the test; names of faults would be cut.
        shown = [(row[0], *row[2:-1]) for row in cells]
        return Table(title, ("fault", *head[2:-1]), shown, names=1)
    named = [(row.agent or ALL, *one) for row, one in zip(rows, cells, strict=True)]
    return Table(title, ("agent", *head), named, names=3)


def _agent_tables(results: ResilienceResults) -> list[Table]:
    """Retention by agent and fault, where there is more than one agent."""
    rows = [row for row in results.measures if row.agent]
    arms = list(dict.fromkeys(row.arm for row in rows))
    agents = list(dict.fromkeys(row.agent for row in rows))
    if len(agents) < 2:
        return []
    found = {(row.agent, row.arm): percent(row.retention[0]) for row in rows}
    cells = [(agent, *(found.get((agent, arm), UNDEFINED) for arm in arms)) for agent in agents]
    return [Table("Retention by agent (%)", ("agent", *arms), cells, names=1)]


def _extra_table(rows: Sequence[ArmMeasures]) -> Table:
    """Show what a run that met a fault and succeeded took beyond its pair."""
    names = ("steps", "page_loads", "model_calls", "tokens", "dollars", "seconds")
    head = ("agent", "fault", "pairs", *(name.replace("_", " ") for name in names))
    parts = tuple(f"{part} s" for part in LATENCY_PARTS)
    cells = [
        (
            row.agent or ALL,
            row.arm,
            str(row.recovered_pairs),
            *(figure(row.extra[name]) for name in names),
            *(figure(row.extra[f"{part}_seconds"], limits=False) for part in LATENCY_PARTS),
        )
        for row in rows
    ]
    return Table("What recovering took beyond the clean run", (*head, *parts), cells)


def paper_tables(rows: Sequence[ArmCost]) -> list[Table]:
    """Return the paper's tables: efficiency without faults, and success, cost and latency with."""
    clean = [row for row in rows if row.arm == CLEAN]
    head = ("agent", "success (%)", "steps", "calls", "tokens", "cents", "latency s")
    cells = [
        (
            row.agent,
            interval_cell(row.success),
            *(figure(one, limits=False) for one in (row.steps, row.model_calls, row.tokens)),
            cents(row.dollars),
            figure(row.seconds, limits=False),
            *(number(row.latency[part]) for part in LATENCY_PARTS),
        )
        for row in clean
    ]
    efficiency = Table("Efficiency per task, no faults", (*head, *LATENCY_PARTS), cells, names=1)
    arms = list(dict.fromkeys(row.arm for row in rows))
    by_place = {(row.agent, row.arm): row for row in rows}
    agents = list(dict.fromkeys(row.agent for row in rows))

    def matrix(title: str, shown: Mapping[tuple[str, str], str]) -> Table:
        lines = [(agent, *(shown.get((agent, arm), UNDEFINED) for arm in arms)) for agent in agents]
        return Table(title, ("agent", *arms), lines, names=1)

    return [
        efficiency,
        matrix(
            "Accuracy by scenario (%)", {at: percent(r.success[0]) for at, r in by_place.items()}
        ),
        matrix("Cents per task by scenario", {at: cents(r.dollars) for at, r in by_place.items()}),
        matrix(
            "Latency per task by scenario (s)",
            {at: figure(r.seconds, limits=False) for at, r in by_place.items()},
        ),
    ]


def _popup_table(rows: Sequence[PopupFactor]) -> Table | None:
    cells = [
        (
            row.agent or ALL,
            *(str(row.fired[level]) for level in LEVELS),
            *(interval_cell(row.recovery[level]) for level in LEVELS),
            interval_cell(row.difference),
        )
        for row in rows
    ]
    head = ("agent", "full", "none", "recovered, full [95 %]", "recovered, none [95 %]")
    title = "Popups by accessibility: fired and recovered from (%)"
    return Table(title, (*head, "difference [95 %]"), cells, names=1) if rows else None


def _judge_table(rows: Sequence[JudgedArm]) -> Table | None:
    cells = [
        (
            row.judge,
            row.arm,
            str(row.runs),
            str(row.accepted),
            interval_cell(row.precision),
            interval_cell(row.recall),
            interval_cell(row.difference) if row.difference else UNDEFINED,
            p_value(row.p_value),
        )
        for row in rows
    ]
    head = ("judge", "arm", "runs", "accepted", "precision [95 %]", "recall [95 %]")
    title = "Judges with and without faults (%)"
    return Table(title, (*head, "precision - clean [95 %]", "p"), cells) if rows else None


def interval_cell(estimate: IntervalEstimate) -> str:
    """Show a rate with its interval as percentages."""
    value, low, high = estimate
    return with_limits(value, None if low is None or high is None else (low, high))


def figure(estimate: IntervalEstimate, *, limits: bool = True) -> str:
    """Show a mean, with its interval."""
    value, low, high = estimate
    if value is None or low is None or high is None or not limits:
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]"


def number(value: float | None) -> str:
    """Show a figure of any size."""
    if value is None:
        return UNDEFINED
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:z.3g}"


def cents(estimate: IntervalEstimate) -> str:
    """Show a mean of dollars in US cents."""
    return UNDEFINED if estimate[0] is None else f"{100 * estimate[0]:z.2f}"


def p_value(value: float | None) -> str:
    """Show a p-value; none where there was no test."""
    if value is None:
        return UNDEFINED
    return f"<{_SMALLEST}" if value < _SMALLEST else f"{value:.3f}"


def report(config: ResilienceConfig) -> int:
    """Compare runs with and without faults, show and write the results; return the exit code, 1 for
    a study in which no run met a fault."""
    experiment = read_experiment(config)
    results = results_of(experiment, config.judge, config.judge_option, config.judged)
    if config.full:
        print_tables(all_tables(results))
        notes = [line for note in results.notes for line in folded(note, screen_width())]
        sys.stdout.writelines(f"{line}\n" for line in ["", *notes] if notes)
    else:
        rest = (
            f"agent by agent, costs and latency: --full; everything is in {config.out}/results.json"
        )
        sys.stdout.write(screen(results, rest=rest))
    write_results(results, config.out)
    if config.plots:
        plot_retention(results.measures, config.plots)
    runs = [run for arm in experiment.faulted for run in arm.runs]
    if any(run.fired for run in runs):
        return OK
    sys.stderr.write(
        f"0 faults fired in {len(runs)} faulted runs: nothing was measured. See that the agents go "
        "through the proxy, that their requests load pages (--page-requests for an agent that is "
        "no browser), and that faults are planned at page loads which they reach\n"
    )
    return FAILURES
