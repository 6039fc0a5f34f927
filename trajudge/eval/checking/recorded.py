"""A run as its folder holds it, read for checking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.annotations.model import Labels
from trajudge.eval.data.run_folder import (
    JUDGMENTS,
    UnreadableRecord,
    read_judgments,
    read_labels,
    read_manifest,
    read_rewards,
    read_unreadable,
)
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular


class CheckedRun(NamedTuple):
    """The folder's files; ``torn``: the last line of the judgments is not whole. ``unreadable`` are
    the records of the data that nobody could read and whose key is not known."""

    folder: Path
    manifest: Mapping[str, Any]
    judgments: list[Judgment]
    labels: Labels
    rewards: Mapping[TrajectoryKey, float | None]
    unreadable: list[UnreadableRecord]
    torn: bool

    @property
    def keys(self) -> set[TrajectoryKey]:
        """The trajectories that have a judgment."""
        return {judgment.key for judgment in self.judgments}

    @property
    def skipped_unread(self) -> list[Judgment]:
        """The judgments that say that their trajectory could not be read: it has no reward."""
        return [
            judgment
            for judgment in self.judgments
            if judgment.status is Status.SKIPPED and judgment.key not in self.rewards
        ]

    @property
    def published(self) -> bool:
        """Tell whether others ran the judge."""
        return bool(self.manifest.get("published"))

    def part(self, name: str) -> dict[str, Any]:
        """Return a mapping of the manifest, empty where it holds none of that name."""
        value = self.manifest.get(name)
        return dict(value) if isinstance(value, dict) else {}


def read_recorded(folder: Path) -> CheckedRun:
    """Read the folder of a run. Raises UserError where it is none, or a file of it is damaged."""
    manifest = read_manifest(folder)
    judgments = read_judgments(folder)
    if not judgments:
        raise UserError(f"{folder / JUDGMENTS}: holds no judgment: judge with this --out first")
    content = read_regular(folder / JUDGMENTS)
    return CheckedRun(
        folder=folder,
        manifest=manifest,
        judgments=judgments,
        labels=read_labels(folder),
        rewards=read_rewards(folder),
        unreadable=read_unreadable(folder),
        torn=not content.endswith(b"\n"),
    )
