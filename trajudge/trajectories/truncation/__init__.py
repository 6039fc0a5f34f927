"""Truncation of a trajectory to fit a prompt: ever shorter views of it.

The rungs, in order::

    full     every step, the full accessibility tree
    pruned   every step, the pruned tree (nodes without meaning left out)
    cut      every step, the tree cut in the middle: its beginning (title, navigation, main
             content) and its end (dialogs and messages are appended there) stay
    elided   a third of the budget for the tree, cut as above; long texts of the steps shortened,
             reasoning most; then steps left out in the middle: some first ones and twice as many
             last ones stay (or at another place that is named, ``Elision``); what they leave of
             the budget goes back to the tree

Whatever is left out is said in the text, with its amount. A rung is chosen before the call by
counting tokens; a provider that still finds the prompt too long moves one rung down.
"""

from __future__ import annotations

from trajudge.trajectories.truncation.cutting import cut_middle
from trajudge.trajectories.truncation.steps import MARKER_TOKENS, STEP_OVERHEAD, Elision
from trajudge.trajectories.truncation.views import (
    MAX_OVERFLOWS,
    SHRINK,
    PromptTruncator,
    TruncatedView,
    TruncationLevel,
    views,
)

__all__ = [
    "MARKER_TOKENS",
    "MAX_OVERFLOWS",
    "SHRINK",
    "STEP_OVERHEAD",
    "Elision",
    "PromptTruncator",
    "TruncatedView",
    "TruncationLevel",
    "cut_middle",
    "views",
]
