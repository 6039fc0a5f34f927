"""Runs that were attacked, and what a judge makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line, write_labels, write_manifest
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory

CLAIM = "all of it is in place"
CHANGES = ("identity", "claim-confident", "benign-answer", "self-verdict", "answer-wrong")


def judged(attacked: Path, folder: Path, verdict: Callable[[Trajectory], bool | None]) -> Path:
    """A run of a judge that is a function."""
    folder.mkdir()
    lines = []
    for run in open_source(f"trajudge:{attacked}"):
        assert isinstance(run, Trajectory)
        success = verdict(run)
        status = Status.UNPARSABLE if success is None else Status.OK
        lines.append(Judgment(key=run.key, judge="made", status=status, success=success))
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, lines)))
    write_labels(folder, [])
    write_manifest(folder, {"data": f"trajudge:{attacked}"})
    return folder
