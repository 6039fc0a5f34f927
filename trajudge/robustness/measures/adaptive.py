"""What an attacker that learns came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trajudge.annotations.agentrewardbench import family_of
from trajudge.robustness.measures.rates import RobustnessRate, rate
from trajudge.trajectories.model import TrajectoryKey

WITHIN = (1, 5, 25)


class Query(NamedTuple):
    """One query: the ``number``-th of its source, from 1, and what the judge said."""

    source: TrajectoryKey
    number: int
    perturbation: str
    success: bool | None
    score: float | None


class AdaptiveSuccess(NamedTuple):
    """The share of rejected failures that were accepted within so many queries, by that number;
    ``queries`` were made; ``best`` are the attacks that worked most often, with how often."""

    within: dict[str, RobustnessRate]
    queries: int
    best: tuple[tuple[str, int], ...]


def adaptive_success(
    sources: Sequence[TrajectoryKey], log: Sequence[Query], within: Sequence[int] = WITHIN
) -> AdaptiveSuccess:
    """Summarise a log; a source whose queries ended without an acceptance withstood."""
    won = {one.source: one for one in log if one.success}
    tasks = {(key.benchmark, family_of(key)): 0 for key in sources}
    number = {task: place for place, task in enumerate(tasks)}
    cluster = np.array([number[key.benchmark, family_of(key)] for key in sources], np.int64)
    needed = np.array([won[key].number if key in won else np.inf for key in sources])
    names = [one.perturbation for one in won.values()]
    best = sorted({(name, names.count(name)) for name in names}, key=lambda one: (-one[1], one[0]))
    shares = {str(n): rate(needed <= n, np.ones(len(needed), bool), cluster) for n in within}
    return AdaptiveSuccess(shares, len(log), tuple(best[:5]))
