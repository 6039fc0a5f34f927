"""Derive labels from facts; ambiguous cases are None.

Names and scale as in AgentRewardBench section 3.2: success, side effect, looping (a cycle of
actions), optimality from 1 (complete failure) to 4 (completely optimal).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from trajudge.environments.verify.model import Labels

REPEATED = 3  # as often is a cycle; one time less is left open
NEARLY_OPTIMAL = 1.5  # times the length of the shortest way: suboptimal beyond ...
MARGIN = 0.1  # ... and left open this near to it

_YES_NO = {True: "Yes", False: "No", None: "Unsure"}
_SUCCESS = {True: "Successful", False: "Unsuccessful", None: "Unsure"}
_OPTIMALITY = {
    1: "1. Complete Failure",
    2: "2. Suboptimal",
    3: "3. Somewhat Optimal",
    4: "4. Completely Optimal",
    None: "Unsure",
}


class ExecutedAction(NamedTuple):
    """One action of the trace: where (URL, and what is seen there), what (BrowserGym syntax), and
    the digests of the state before and after."""

    url: str
    action: str
    before: str
    after: str


def repeated(actions: Sequence[ExecutedAction]) -> int:
    """Return how often the most frequent action was done at the same URL in the same state with
    nothing coming of it. Doing again what changed the state in between is no repetition."""
    idle = Counter(action[:3] for action in actions if action.before == action.after)
    return max(idle.values(), default=0)


def looping(times: int) -> bool | None:
    """Tell whether it was a cycle; None for once too often."""
    return None if times == REPEATED - 1 else times >= REPEATED


def optimality(success: bool | None, steps: int, shortest: int) -> int | None:
    """1 for a failure; 4 for the shortest way, 3 for up to half as long again, 2 beyond. One
    action more than the shortest, and lengths near the threshold, are left open; so is a success
    where the shortest way is not known (0)."""
    if success is False:
        return 1
    if success is None or not shortest:
        return None
    if steps <= shortest:
        return 4
    ratio = steps / max(shortest, 1)
    if ratio >= NEARLY_OPTIMAL + MARGIN:
        return 2
    return 3 if steps > shortest + 1 and ratio <= NEARLY_OPTIMAL - MARGIN else None


def published(labels: Labels) -> dict[str, str]:
    """Return the labels under AgentRewardBench's names, in its words."""
    return {
        "trajectory_success": _SUCCESS[labels.success],
        "trajectory_side_effect": _YES_NO[labels.side_effect],
        "trajectory_optimality": _OPTIMALITY[labels.optimality],
        "trajectory_looping": _YES_NO[labels.repetition],
    }
