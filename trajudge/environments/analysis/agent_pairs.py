"""What choosing between two agents on half of the data costs (Statistical Precipice, 6.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, get_args

import numpy as np

from trajudge.environments.analysis.outcomes import RunOutcome, tree
from trajudge.stats.suites import Halves, expected_regret


def selection_regret(agents: Mapping[str, Sequence[RunOutcome]], seed: int) -> dict[str, list[Any]]:
    """Return, for the first agent of every pair, a row for each reading of "half": the ``gap`` in
    success (first minus second), the probability that half of the data prefers the ``wrong``
    agent, and their product, the expected ``regret``; means over applications.

    Only configurations that both agents ran with a known outcome count.
    """
    rows: dict[str, list[Any]] = {agent: [] for agent in agents}
    for first, second in combinations(agents, 2):
        shared = _known(agents[first]).keys() & _known(agents[second]).keys()
        if not shared:
            continue
        one, other = (
            tree([run for case in sorted(shared) for run in _known(agents[agent])[case]])
            for agent in (first, second)
        )
        for halves in get_args(Halves):
            regret = expected_regret(one, other, np.random.default_rng(seed), halves=halves)
            rows[first].append(
                {
                    "other": second,
                    "halves": halves,
                    "configurations": len(one.scenario),
                    "gap": float(regret.gap.mean()),
                    "wrong": float(regret.wrong.mean()),
                    "regret": float(regret.regret.mean()),
                }
            )
    return rows


def _known(runs: Sequence[RunOutcome]) -> dict[str, list[RunOutcome]]:
    """Return the runs of known outcome by configuration."""
    by_case: dict[str, list[RunOutcome]] = {}
    for run in runs:
        if run.success is not None:
            by_case.setdefault(run.case.id, []).append(run)
    return by_case
