"""A trajectory as an annotator sees it: nothing of who ran it, what it was given, or any verdict.

What must not be seen is taken out before a template gets it, so that no page can show it by
mistake: the agent's name, the official reward, telemetry, metadata, paths of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from trajudge.annotations.queue import QueueItem
from trajudge.app.server.problems import PageError
from trajudge.app.server.workspace import Workspace
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.content import (
    StepContent,
    StepRequest,
    step_linker,
    step_request,
)
from trajudge.app.trajectories.library import TrajectoryAbsent
from trajudge.app.trajectories.overview import GoalPicture, StepSummary

T = TypeVar("T", StepSummary, GoalPicture)

BLIND_TABS = {"action": "Action & reasoning", "tree": "Accessibility tree", "answer": "Answer"}


def blind_request(query: Mapping[str, str]) -> StepRequest:
    """Read which step and tab an address asks for; what is not understood has its default."""
    asked = step_request(query)
    tab = asked.tab if asked.tab in BLIND_TABS else "action"
    return asked._replace(tab=tab, unseen=None, run="")


def blind_content(
    access: TrajectoryAccess,
    workspace: Workspace,
    item: QueueItem,
    path: tuple[str | int, ...],
    chosen: StepRequest,
) -> StepContent:
    """Open an item's trajectory and take out what must not be seen; its links lead to ``path``.
    Raises PageError 404 for one that is not in the data."""
    try:
        opened = access.library(workspace).open(item.key)
    except TrajectoryAbsent as absent:
        # The message names the agent, which the annotator must not read.
        raise PageError(
            404,
            "The trajectory of this item is not in the data: skip it, or start again with --data.",
        ) from absent
    content = access.summaries.content(opened, chosen)
    hidden = item.key.model_copy(update={"agent": ""})
    trajectory = opened.trajectory.model_copy(
        update={"key": hidden, "official_reward": None, "telemetry": {}, "metadata": {}}
    )
    return content._replace(
        key=hidden,
        trajectory=trajectory,
        warnings=(),
        steps=tuple(map(_blind, content.steps)),
        goal_pictures=tuple(map(_blind, content.goal_pictures)),
        shown=None if content.shown is None else _blind(content.shown),
        network=None,
        facts=(),
        metadata=(),
        link=step_linker(path, content.request),
    )


def _blind(pictured: T) -> T:
    """Leave out why a picture cannot be shown: the reason names its file."""
    return pictured._replace(no_image="its file cannot be read") if pictured.no_image else pictured
