"""What agents reach: success with its interval, by group, and how far each axis moves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from trajudge.environments.analysis.agent_pairs import selection_regret
from trajudge.environments.analysis.outcomes import AXES, DIMENSIONS, RunOutcome, tree
from trajudge.environments.model.case import Case
from trajudge.stats.intervals import Interval, clustered_limits
from trajudge.stats.suites import (
    CLUSTERED,
    Tree,
    cluster_t_interval,
    clustered_success,
    hierarchical_bootstrap,
    mad_decomposition,
)

_NO_WIDTH = 1e-9  # of a share: what rounding may leave between two equal limits


def summary(agent: str, runs_of_agent: Sequence[RunOutcome], seed: int) -> dict[str, Any]:
    """Return an agent's success over the suite with its interval, its turns and its cost.

    ``interval`` names the method, None where there is no interval; ``t_low`` and ``t_high`` are
    the interval with scenarios as clusters, without resampling, None where it has no width.
    """
    runs = tree(runs_of_agent)
    suite, method = _suite_interval(agent, runs, seed)
    clusters = cluster_t_interval(runs)
    spread = bool(clusters.width[0] > _NO_WIDTH)
    costs = [outcome.cost for outcome in runs_of_agent if outcome.cost is not None]
    return {
        "agent": agent,
        "runs": len(runs_of_agent),
        "ambiguous": sum(outcome.success is None for outcome in runs_of_agent),
        "success": float(suite.estimate[0]),
        "low": _share(suite.low[0]),
        "high": _share(suite.high[0]),
        "interval": method,
        "t_low": _share(clusters.low[0]) if spread else None,
        "t_high": _share(clusters.high[0]) if spread else None,
        "turns": float(np.mean([outcome.turns for outcome in runs_of_agent])),
        "cost": sum(costs) / len(costs) if len(costs) == len(runs_of_agent) else None,
        "notes": list(suite.notes),
    }


def _suite_interval(agent: str, runs: Tree, seed: int) -> tuple[Interval, str | None]:
    """Compute the interval of the suite's success, and name its method.

    Where all runs of every application ended alike the bootstrap draws the same suite again and
    again: it has no width, which says nothing of other scenarios. There, and where an application
    has few scenarios, Wilson's interval over scenarios stands in its place.
    """
    suite = hierarchical_bootstrap(runs, np.random.default_rng(seed)).suite
    if CLUSTERED not in suite.notes and suite.width[0] > _NO_WIDTH:
        return suite, "hierarchical bootstrap"
    unseen = "an application has few scenarios, whose bootstrap is too narrow"
    if CLUSTERED not in suite.notes:
        unseen = "in every application all runs ended alike, so the bootstrap has no width"
        suite = clustered_success(runs)[0]
    undefined = bool(np.isnan(suite.low[0]))
    why = (
        "no interval, for there is one scenario" if undefined else "Wilson's over scenarios instead"
    )
    notes = (f"{agent}: {unseen}; {why}",)
    return replace(suite, notes=notes), None if undefined else "Wilson"


def _share(value: float) -> float | None:
    return None if np.isnan(value) else float(np.clip(value, 0, 1))


def _limits(outcomes: Sequence[RunOutcome]) -> tuple[float | None, float | None]:
    """Compute the 95 % limits of the share of successes: runs of a scenario are a cluster of its
    application; None where there are not two scenarios."""
    known = [outcome for outcome in outcomes if outcome.success is not None]
    configs = [outcome.case.config for outcome in known]
    return clustered_limits(
        [bool(outcome.success) for outcome in known],
        [config.scenario for config in configs],
        [config.app for config in configs],
    )


def groups() -> dict[str, Callable[[Case], str]]:
    """Return what accuracy is broken down by: level, load, application, and each dimension of
    difficulty."""
    dimensions = {name: partial(_grade, number) for number, name in enumerate(DIMENSIONS)}
    return {
        "level": lambda case: str(case.level),
        "load": lambda case: str(case.load),
        "application": lambda case: case.config.app,
        **dimensions,
    }


def _grade(dimension: int, case: Case) -> str:
    return str(case.vector[dimension])


def accuracy(outcomes: Sequence[RunOutcome]) -> list[dict[str, Any]]:
    """Compute success in every group with Wilson's limits, scenarios as clusters."""
    rows = []
    for title, of in groups().items():
        for value in sorted({of(outcome.case) for outcome in outcomes}):
            mine = [outcome for outcome in outcomes if of(outcome.case) == value]
            known = [outcome.success for outcome in mine if outcome.success is not None]
            low, high = _limits(mine)
            counts = {"runs": len(known), "success": sum(known) / len(known) if known else None}
            rows.append({"by": title, "value": value, **counts, "low": low, "high": high})
    return rows


def sensitivity(outcomes: Sequence[RunOutcome]) -> list[dict[str, Any]]:
    """Return how far each axis moves success: mean absolute difference over matched pairs, what
    chance alone would give, and the excess; no pair, no number."""
    made = tree(outcomes)
    rows = []
    for number, axis in enumerate(AXES):
        seen = mad_decomposition(made, number)
        known = len(seen.differences) > 0
        figures = {"mad": seen.mad, "floor": seen.floor, "excess": seen.excess}
        row = {name: value if known else None for name, value in figures.items()}
        rows.append({"axis": axis, "pairs": len(seen.differences), **row})
    return rows


def results(outcomes: Sequence[RunOutcome], seed: int) -> dict[str, Any]:
    """Return everything by agent, in stable order; agents of ``without_success`` are left out."""
    known = {agent: runs for agent, runs in _by_agent(outcomes).items() if _is_known(runs)}
    regrets = selection_regret(known, seed)
    return {
        agent: {
            "summary": summary(agent, runs, seed),
            "accuracy": accuracy(runs),
            "axes": sensitivity(runs),
            "regret": regrets[agent],
        }
        for agent, runs in known.items()
    }


def without_success(outcomes: Sequence[RunOutcome]) -> list[str]:
    """Name the agents of which no run's success is known."""
    return [
        f"{agent} has no row: its runs, {len(runs)}, are all ambiguous"
        for agent, runs in _by_agent(outcomes).items()
        if not _is_known(runs)
    ]


def _by_agent(outcomes: Sequence[RunOutcome]) -> dict[str, list[RunOutcome]]:
    agents: dict[str, list[RunOutcome]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.agent):
        agents.setdefault(outcome.agent, []).append(outcome)
    return agents


def _is_known(runs: Sequence[RunOutcome]) -> bool:
    return any(outcome.success is not None for outcome in runs)


NONE = "–"


def percent(share: float | None) -> str:
    return NONE if share is None or np.isnan(share) else f"{100 * share:.1f}"
