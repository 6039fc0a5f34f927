"""What a row of a table is about: a benchmark or all of them, an agent or all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trajudge.annotations.agentrewardbench import BENCHMARKS
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL
from trajudge.eval.scoring.reference import ReferenceLabels
from trajudge.eval.stats.interval import Bools


class TrajectoryGroup(NamedTuple):
    """A benchmark or OVERALL, an agent or ALL_AGENTS."""

    benchmark: str
    agent: str

    def members(self, reference: ReferenceLabels) -> Bools:
        """Which trajectories of the reference belong to it, (T,)."""
        chosen = np.ones(len(reference.benchmark), dtype=bool)
        if self.benchmark != OVERALL:
            chosen &= reference.benchmark == reference.benchmarks.index(self.benchmark)
        if self.agent != ALL_AGENTS:
            chosen &= reference.agent == reference.agents.index(self.agent)
        return chosen


def groups(reference: ReferenceLabels, among: Bools | None = None) -> list[TrajectoryGroup]:
    """Of the trajectories ``among`` (T,) the reference's, all without it: known benchmarks in the
    paper's order, others by name, then all of them; of each first all agents, then one by one."""
    chosen = slice(None) if among is None else among
    pairs = set(
        zip(reference.benchmark[chosen].tolist(), reference.agent[chosen].tolist(), strict=True)
    )
    agents: dict[str, set[str]] = {}
    for benchmark, agent in pairs:
        agents.setdefault(reference.benchmarks[benchmark], set()).add(reference.agents[agent])
    known = [benchmark for benchmark in BENCHMARKS if benchmark in agents]
    ordered = [*known, *sorted(set(agents) - set(known)), OVERALL]
    agents[OVERALL] = set().union(*agents.values())
    return [
        TrajectoryGroup(benchmark, agent)
        for benchmark in ordered
        for agent in (ALL_AGENTS, *sorted(agents[benchmark]))
    ]
