"""The results of agents as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trajudge.environments.analysis.agent_results import NONE, groups, percent
from trajudge.trajectories.util.tables import Table, first_screen

_PAIRS = "Choosing an agent on half of the data (%)"
_PAIRS_HEAD = (
    "first",
    "second",
    "half of the",
    "configurations",
    "gap",
    "wrong",
    "expected regret",
)


_HEAD = ("agent", "runs", "open", "success [95 %]", "turns", "cost a task")


def screen(
    content: dict[str, Any], notes: Sequence[str], *, rest: str, width: int | None = None
) -> str:
    """Lay out the agents' success in at most 40 lines, the highest first.

    ``rest`` says where everything else stands.
    """
    entries = sorted(
        (entry["summary"] for entry in content.values()), key=lambda row: -row["success"]
    )
    rows = [_summary_row(row) for row in entries]
    above = ["No agent has a run whose success is known: all are left out"]
    if entries:
        runs = sum(row["runs"] for row in entries)
        named = "1 agent" if len(rows) == 1 else f"{len(rows)} agents"
        above = [
            f"{named}, {runs:,} runs; highest success: {rows[0][0]}, {rows[0][3]} (%, 95 % "
            "interval over application, scenario, configuration and run)"
        ]
    if left_out := sum(row["open"] for row in entries):
        above.append(f"{left_out:,} runs whose success is open to argument are left out")
    warnings = [f"note: {note}" for note in notes]
    return first_screen(
        above, [Table("", _HEAD, rows, names=1)], warnings=warnings, rest=rest, width=width
    )


def tables(content: dict[str, Any]) -> list[Table]:
    """Return the summary of all agents, their success group by group, the axes."""
    agents = [_summary_row(entry["summary"]) for entry in content.values()]
    axes: list[tuple[str, ...]] = [
        (agent, row["axis"], str(row["pairs"]), *(percent(row[n]) for n in ("mad", "floor")))
        for agent, entry in content.items()
        for row in entry["axes"]
    ]
    axes_head = ("agent", "axis", "pairs", "mean |difference|", "by chance")
    pairs = [
        (
            agent,
            row["other"],
            row["halves"],
            str(row["configurations"]),
            *(percent(row[name]) for name in ("gap", "wrong", "regret")),
        )
        for agent, entry in content.items()
        for row in entry["regret"]
    ]
    return [
        Table("Agents over the suite", _HEAD, agents, names=1),
        _breakdown(content),
        Table("How far each axis moves success (%)", axes_head, axes),
        *([Table(_PAIRS, _PAIRS_HEAD, pairs)] if pairs else []),
    ]


def _summary_row(row: dict[str, Any]) -> tuple[str, ...]:
    cost = NONE if row["cost"] is None else f"${row['cost']:.4f}"
    success = f"{percent(row['success'])} [{percent(row['low'])}, {percent(row['high'])}]"
    return (
        row["agent"], str(row["runs"]), str(row["open"]), success, f"{row['turns']:.1f}", cost
    )  # fmt: skip


def _breakdown(content: dict[str, Any]) -> Table:
    """Success of every agent in every group, with the number of runs."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for agent, entry in content.items():
        for row in entry["accuracy"]:
            shown = f"{percent(row['success'])} ({row['runs']})"
            cells.setdefault((row["by"], row["value"]), {})[agent] = shown
    order = list(groups())
    rows = [
        (*group, *(shares.get(agent, NONE) for agent in content))
        for group, shares in sorted(
            cells.items(), key=lambda cell: (order.index(cell[0][0]), cell[0])
        )
    ]
    return Table("Success by group, % (runs)", ("by", "", *content), rows)
