"""Folders of runs as the command leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trajudge.annotations import Label
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey


def write_run(
    folder: Path,
    judgments: Sequence[Judgment],
    labels: Sequence[Label],
    rewards: Mapping[TrajectoryKey, float | None] | None = None,
    **manifest: Any,
) -> Path:
    """A run's folder as the command leaves it."""
    folder.mkdir(parents=True)
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, labels)
    write_rewards(folder, {**dict.fromkeys(j.key for j in judgments), **(rewards or {})})
    judge = judgments[0].judge if judgments else "judge"
    settings = {"judge": judge, "data": "trajudge:data", "version": "0.1.0", "model": "gpt-4o"}
    write_manifest(folder, settings | manifest)
    return folder
