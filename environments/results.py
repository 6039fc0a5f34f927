"""What agents reach: ``python -m environments.results RECORDED... --configs CASES``.

Success by agent over all applications with the hierarchical bootstrap over application, scenario,
configuration and run (paper 001, section 4.3), by level, application and difficulty dimension, how
far each axis moves it (matched pairs, section 16), turns and cost. Runs whose success is open to
argument are left out and counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from annotations import store as annotation_store
from environments.model.case import Case, read_cases
from eval.rendering import Table, render
from eval.stats.binomial import wilson
from eval.stats.hierarchical import hierarchical_bootstrap
from eval.stats.sensitivity import mad_decomposition
from eval.stats.tree import Tree, tree_from_rollouts
from trajectories import store
from trajectories.atomic import write_bytes
from trajectories.errors import UserError
from trajectories.exits import DONE, Parser, user_errors
from trajectories.model import Trajectory
from trajectories.terminal import terminal_console

AXES = ("instance", "profile", "theme", "ui")
DIMENSIONS = ("depth", "breadth", "interaction", "visual", "information", "reasoning", "risk")
NONE = "–"


class Outcome(NamedTuple):
    """One run: who, on what, whether it was a success (None: open), and what it took."""

    agent: str
    case: Case
    success: bool | None
    turns: float
    cost: float | None


def outcomes(folder: Path, cases: dict[str, Case]) -> list[Outcome]:
    """The runs of a recorded folder. A run of no case (its noise was added) belongs to the case
    without noise. Raises UserError for a folder that is none, or a run of an unknown case."""
    labels = {a.key: a.success for a in annotation_store.load(folder / "labels.jsonl")}
    found = []
    for entry in store.read(folder):
        if not isinstance(entry, Trajectory):
            raise UserError(f"{entry.source}: {entry.reason}")
        case = cases.get(entry.raw_task_id) or cases.get(_quiet(entry.raw_task_id))
        if case is None:
            raise UserError(
                f"{folder}: no case is called {entry.raw_task_id}: give the --configs that the "
                "runs were recorded with"
            )
        turns, cost = entry.telemetry.get("n_steps", np.nan), entry.telemetry.get("cost")
        found.append(Outcome(entry.key.agent, case, labels.get(entry.key), turns, cost))
    return found


def _quiet(task: str) -> str:
    """The id of the same configuration without noise."""
    head, _, seed = task.rpartition(".")
    return f"{head.rpartition('.')[0]}.n0.{seed}"


def tree(found: Sequence[Outcome]) -> Tree:
    """The runs as applications, scenarios, configurations and rollouts. Raises ValueError if none
    is labelled."""
    known = [outcome for outcome in found if outcome.success is not None]
    configs = [outcome.case.config for outcome in known]
    return tree_from_rollouts(
        [config.app for config in configs],
        [f"{config.app}.{config.scenario}" for config in configs],
        [int(bool(outcome.success)) for outcome in known],
        [[getattr(config, axis) for axis in AXES] for config in configs],
    )


def summary(agent: str, found: Sequence[Outcome], seed: int) -> dict[str, Any]:
    """An agent's success over the suite with its interval, its turns and its cost."""
    suite = hierarchical_bootstrap(tree(found), np.random.default_rng(seed)).suite
    costs = [outcome.cost for outcome in found if outcome.cost is not None]
    notes = list(suite.notes)
    known = [outcome.success for outcome in found if outcome.success is not None]
    if len(set(known)) == 1:
        rate = wilson(sum(known), len(known))
        notes.append(
            f"{agent}: all runs ended alike, so the bootstrap has no width; Wilson's interval over "
            f"its runs is [{_percent(float(rate.low))}, {_percent(float(rate.high))}] %"
        )
    return {
        "agent": agent,
        "runs": len(found),
        "open": sum(outcome.success is None for outcome in found),
        "success": float(suite.estimate[0]),
        "low": float(suite.low[0]),
        "high": float(suite.high[0]),
        "turns": float(np.mean([outcome.turns for outcome in found])),
        "cost": sum(costs) / len(costs) if len(costs) == len(found) else None,
        "notes": notes,
    }


def groups() -> dict[str, Callable[[Case], str]]:
    """What accuracy is broken down by: level, application, and each dimension of difficulty."""
    dimensions = {name: partial(_grade, number) for number, name in enumerate(DIMENSIONS)}
    return {
        "level": lambda case: str(case.level),
        "application": lambda case: case.config.app,
        **dimensions,
    }


def _grade(dimension: int, case: Case) -> str:
    return str(case.vector[dimension])


def accuracy(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Success in every group with Wilson's interval over runs."""
    rows = []
    for title, of in groups().items():
        for value in sorted({of(outcome.case) for outcome in found}):
            known = [
                outcome.success
                for outcome in found
                if of(outcome.case) == value and outcome.success is not None
            ]
            rate = wilson(sum(known), len(known))
            bounds = {"low": float(rate.low), "high": float(rate.high)}
            counts = {"runs": len(known), "success": float(rate.estimate)}
            rows.append({"by": title, "value": value, **counts, **bounds})
    return rows


def sensitivity(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """How far each axis moves success: mean absolute difference over matched pairs, what chance
    alone would give, and the excess; no pair, no number."""
    made = tree(found)
    rows = []
    for number, axis in enumerate(AXES):
        seen = mad_decomposition(made, number)
        known = len(seen.differences) > 0
        figures = {"mad": seen.mad, "floor": seen.floor, "excess": seen.excess}
        row = {name: value if known else None for name, value in figures.items()}
        rows.append({"axis": axis, "pairs": len(seen.differences), **row})
    return rows


def results(found: Sequence[Outcome], seed: int) -> dict[str, Any]:
    """Everything by agent, in stable order."""
    agents: dict[str, list[Outcome]] = {}
    for outcome in found:
        agents.setdefault(outcome.agent, []).append(outcome)
    return {
        agent: {
            "summary": summary(agent, runs, seed),
            "accuracy": accuracy(runs),
            "axes": sensitivity(runs),
        }
        for agent, runs in sorted(agents.items())
        if any(outcome.success is not None for outcome in runs)
    }


def tables(content: dict[str, Any]) -> list[Table]:
    """The summary of all agents, their success group by group, the axes."""
    head = ("agent", "runs", "open", "success [95 %]", "turns", "cost a task")
    agents = [_summary_row(entry["summary"]) for entry in content.values()]
    axes: list[tuple[str, ...]] = [
        (agent, row["axis"], str(row["pairs"]), *(_percent(row[n]) for n in ("mad", "floor")))
        for agent, entry in content.items()
        for row in entry["axes"]
    ]
    axes_head = ("agent", "axis", "pairs", "mean |difference|", "by chance")
    return [
        Table("Agents over the suite", head, agents, names=1),
        _breakdown(content),
        Table("How far each axis moves success (%)", axes_head, axes),
    ]


def _summary_row(row: dict[str, Any]) -> tuple[str, ...]:
    cost = NONE if row["cost"] is None else f"${row['cost']:.4f}"
    success = f"{_percent(row['success'])} [{_percent(row['low'])}, {_percent(row['high'])}]"
    return (
        row["agent"], str(row["runs"]), str(row["open"]), success, f"{row['turns']:.1f}", cost
    )  # fmt: skip


def _breakdown(content: dict[str, Any]) -> Table:
    """Success of every agent in every group, with the number of runs."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for agent, entry in content.items():
        for row in entry["accuracy"]:
            shown = f"{_percent(row['success'])} ({row['runs']})"
            cells.setdefault((row["by"], row["value"]), {})[agent] = shown
    order = list(groups())
    rows = [
        (*group, *(found.get(agent, NONE) for agent in content))
        for group, found in sorted(
            cells.items(), key=lambda cell: (order.index(cell[0][0]), cell[0])
        )
    ]
    return Table("Success by group, % (runs)", ("by", "", *content), rows)


def _percent(share: float | None) -> str:
    return NONE if share is None or np.isnan(share) else f"{100 * share:.1f}"


def _read(folders: Iterable[Path], cases: Path) -> list[Outcome]:
    known = {case.id: case for case in read_cases(cases)}
    return [outcome for folder in folders for outcome in outcomes(folder, known)]


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = Parser(prog="python -m environments.results", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="RECORDED")
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("results.json"), help="file to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default 0)")
    options = parser.parse_args(arguments)
    content = results(_read(options.folders, options.configs), options.seed)
    write_bytes(options.out, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    console = terminal_console(soft_wrap=True)
    console.print(render(tables(content), "table"))
    for note in sorted({note for entry in content.values() for note in entry["summary"]["notes"]}):
        console.print(f"note: {note}")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
