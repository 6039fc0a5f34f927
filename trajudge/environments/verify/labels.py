"""Derive labels from facts; ambiguous cases are None.

Names and scale as in AgentRewardBench section 3.2: success, side effect, looping (a cycle of
actions), optimality from 1 (complete failure) to 4 (completely optimal).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from trajudge.environments.chromium.action_syntax import BadAction, parse
from trajudge.environments.verify.model import Labels
from trajudge.trajectories.model import Observation

REPEATED = 3  # as often is a cycle; one time less is left open
NEARLY_OPTIMAL = 1.5  # times the length of the shortest way: suboptimal beyond ...
MARGIN = 0.1  # ... and left open this near to it
WINDOW = 768  # pixels of a page that are in view
BARE_PAGE, TREE_LINE = 450, 3.2  # pixels of a page without content, and of a line of its tree

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
    """One action of the trace: where (what ``Viewpoint`` names the view), what (BrowserGym syntax),
    and the digests of the state before and after."""

    view: str
    action: str
    before: str
    after: str


class Viewpoint:
    """What an agent sees from step to step: a page, and how far down it has scrolled.

    The position is nominal: a page is as tall as the number of lines of its tree suggests, and only
    ``scroll`` and ``scroll_at`` move in it. It does not depend on a layout, so that the same run
    has the same labels in both engines.
    """

    def __init__(self) -> None:
        self._url: str | None = None
        self._top = 0.0

    def act(self, page: Observation, action: str) -> str:
        """Do an action. Returns a name of the view that it was done in: equal for equal views."""
        if page.url != self._url:
            self._url, self._top = page.url, 0.0
        tree = (page.axtree or "").replace(", visible", "")
        view = f"{page.url} {sha256(tree.encode()).hexdigest()[:16]} {self._top:g}"
        if action.startswith("scroll"):
            height = BARE_PAGE + TREE_LINE * (tree.count("\n") + 1)
            lowest = max(height - WINDOW, 0.0)
            self._top = min(max(self._top + _scrolled(action), 0.0), lowest)
        return view


def _scrolled(action: str) -> float:
    """Return how many pixels an action scrolls down."""
    try:
        name, arguments = parse(action)
    except BadAction:
        return 0.0
    down = arguments[-1] if name in ("scroll", "scroll_at") else 0
    return float(down) if isinstance(down, int | float) else 0.0


def repeated(actions: Sequence[ExecutedAction]) -> int:
    """Return how often the most frequent action was done in the same view and state with nothing
    coming of it. Doing again what changed the state in between is no repetition."""
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
