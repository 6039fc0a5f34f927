"""A trajectory as an annotator sees it: nothing of who ran it, what it was given, or any verdict.

What must not be seen is taken out before a template gets it, so that no page can show it by
mistake: the agent's name, the official reward, telemetry, metadata, paths of files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trajudge.annotations.labelling.records import QueueItem
from trajudge.app.server.links import address
from trajudge.app.server.problems import PageError
from trajudge.app.server.workspace import Workspace
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.content import StepContent, StepRequest, step_content
from trajudge.app.trajectories.library import TrajectoryAbsent

BLIND_TABS = {"action": "Action & reasoning", "tree": "Accessibility tree", "answer": "Answer"}
_LONGEST_SEARCH = 200


def blind_request(query: Mapping[str, str]) -> StepRequest:
    """Read which step and tab an address asks for; what is not understood has its default."""
    step, tab = query.get("step", "1"), query.get("tab", "action")
    return StepRequest(
        step=int(step) if re.fullmatch(r"[0-9]{1,6}", step) else 1,
        tab=tab if tab in BLIND_TABS else "action",
        after=query.get("view") == "after",
        diff=query.get("diff") == "1",
        search=query.get("q", "")[:_LONGEST_SEARCH],
    )


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
    content = step_content(opened, access.summaries.of(opened), chosen)
    hidden = item.key.model_copy(update={"agent": ""})
    trajectory = opened.trajectory.model_copy(
        update={"key": hidden, "official_reward": None, "telemetry": {}, "metadata": {}}
    )
    steps = tuple(
        step._replace(no_image="its file cannot be read") if step.no_image else step
        for step in content.steps
    )
    shown = content.shown
    if shown is not None and shown.no_image:
        shown = shown._replace(no_image="its file cannot be read")
    return content._replace(
        key=hidden,
        trajectory=trajectory,
        warnings=(),
        steps=steps,
        shown=shown,
        network=None,
        facts=(),
        metadata=(),
        link=_linker(path, content.request),
    )


def _linker(path: tuple[str | int, ...], chosen: StepRequest) -> Callable[..., str]:
    """Make addresses of the same item with another step or tab."""

    def link(**changes: Any) -> str:
        other = chosen._replace(**changes)
        return address(
            *path,
            step=other.step,
            tab=other.tab if other.tab != "action" else None,
            view="after" if other.after else None,
            diff="1" if other.diff and other.tab == "tree" else None,
            q=other.search if other.tab == "tree" else None,
        )

    return link
