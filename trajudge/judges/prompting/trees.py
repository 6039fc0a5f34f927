"""Two accessibility trees in one prompt."""

from __future__ import annotations

from typing import NamedTuple

from trajudge.trajectories.model import Observation, Trajectory
from trajudge.trajectories.represent import MissingObservation
from trajudge.trajectories.tokens import count_tokens, most_tokens
from trajudge.trajectories.truncation import MARKER_TOKENS, TruncationLevel, cut_middle


class TwoTrees(NamedTuple):
    """Two accessibility trees, and how far down the ladder they stand."""

    rung: TruncationLevel
    before: str
    after: str


def two_trees(before: Observation, after: Observation, budget: int) -> TwoTrees | None:
    """Fit both trees into ``budget`` tokens: full, pruned, or cut in the middle; None if not even
    the markers of the cuts fit."""
    first, second = before.axtree or "", after.axtree or ""
    for rung in (TruncationLevel.FULL, TruncationLevel.PRUNED):
        if rung is TruncationLevel.PRUNED or not (first and second):
            first, second = before.axtree_pruned or first, after.axtree_pruned or second
        if _fit(first, second, budget):
            return TwoTrees(rung, first, second)
    if budget < 2 * MARKER_TOKENS:
        return None
    first = cut_middle(first, max(budget // 2, budget - count_tokens(second)))
    second = cut_middle(second, budget - count_tokens(first))
    return TwoTrees(TruncationLevel.CUT, first, second)


def _fit(first: str, second: str, budget: int) -> bool:
    """Tell whether both fit; nothing is counted where their upper bound fits."""
    if most_tokens(first) + most_tokens(second) <= budget:
        return True
    return count_tokens(first) + count_tokens(second) <= budget


def check_trees(trajectory: Trajectory) -> None:
    """Raise MissingObservation unless every observation has a tree."""
    if not trajectory.steps:
        raise MissingObservation(f"{trajectory.key}: no step is recorded")
    for number, step in enumerate(trajectory.steps, start=1):
        if not (step.observation.axtree or step.observation.axtree_pruned):
            raise MissingObservation(
                f"{trajectory.key}: step {number} has no accessibility tree, and every change is "
                "described from two"
            )
