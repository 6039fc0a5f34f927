"""The results of agents as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trajudge.environments.analysis.agent_results import NONE, groups, percent
from trajudge.rules.files import first
from trajudge.util.tables import Table, first_screen
from trajudge.util.terminal import count_of

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


_HEAD = ("agent", "runs", "ambiguous", "success [95 %]", "turns", "cost a task")

METHOD = (
    "success is the mean over applications of the mean over their scenarios, in %; for its "
    "interval scenarios, levels of the axes and runs are resampled, applications stay fixed"
)


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
        number = sum(row["runs"] for row in entries)
        named = f"{count_of(len(rows), 'agent')}, {count_of(number, 'run')}"
        above = [f"{named}; {_highest(entries)}"]
    if left_out := sum(row["ambiguous"] for row in entries):
        are = "is" if left_out == 1 else "are"
        above.append(f"{count_of(left_out, 'run')} {are} left out, for success is ambiguous")
    return first_screen(
        above,
        [Table("", _HEAD, rows, names=1)],
        [METHOD],
        [f"note: {note}" for note in notes],
        rest=rest,
        width=width,
    )


def agent_notes(content: dict[str, Any]) -> list[str]:
    """Return what the agents' figures need said, each sentence once with the agents' names."""
    agents: dict[str, list[str]] = {}
    for agent, entry in sorted(content.items()):
        for note in entry["summary"]["notes"]:
            agents.setdefault(note.removeprefix(f"{agent}: "), []).append(agent)
    return [f"{', '.join(names)}: {note}" for note, names in agents.items()]


def _highest(entries: Sequence[dict[str, Any]]) -> str:
    """Name the agent of the highest success, or those that tie at it, to the shown digit."""
    highest = entries[0]
    best = [
        row["agent"] for row in entries if percent(row["success"]) == percent(highest["success"])
    ]
    if len(best) == 1:
        return f"highest success: {best[0]}, {_success(highest)} %"
    reached = percent(highest["success"])
    return f"{len(best)} agents tie at the highest success, {reached} %: {first(best, 5)}"


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
        Table(
            "Agents over the suite: mean over applications and scenarios (%)",
            _HEAD,
            agents,
            names=1,
        ),
        _breakdown(content),
        Table("How far each axis moves success (%)", axes_head, axes),
        *([Table(_PAIRS, _PAIRS_HEAD, pairs)] if pairs else []),
    ]


def _summary_row(row: dict[str, Any]) -> tuple[str, ...]:
    cost = NONE if row["cost"] is None else f"${row['cost']:.4f}"
    counts = (str(row["runs"]), str(row["ambiguous"]))
    return (row["agent"], *counts, _success(row), f"{row['turns']:.1f}", cost)


def _success(row: dict[str, Any]) -> str:
    """Return success with its interval, where there is one."""
    limits = "" if row["low"] is None else f" [{percent(row['low'])}, {percent(row['high'])}]"
    return percent(row["success"]) + limits


def _breakdown(content: dict[str, Any]) -> Table:
    """Share of successful runs of every agent in every group, with their number."""
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
    return Table("Share of successful runs by group, % (runs)", ("by", "", *content), rows)
