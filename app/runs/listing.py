"""The list of runs, by their manifests alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trajudge.app.server.links import address
from trajudge.app.server.workspace import OpenedRun


class ListedRun(NamedTuple):
    """A run as the list shows it; ``link`` is the address of its page."""

    link: str
    folder: str
    judge: str
    model: str
    data: str


def listed_runs(runs: Sequence[OpenedRun]) -> list[ListedRun]:
    """Read the manifests. Raises UserError for one that cannot be read."""
    return [_listed(run) for run in runs]


def _listed(run: OpenedRun) -> ListedRun:
    manifest = run.manifest
    return ListedRun(
        link=address("run", run.name),
        folder=run.folder.name,
        judge=str(manifest.get("judge") or ""),
        model=str(manifest.get("model") or ""),
        data=str(manifest.get("data") or ""),
    )
