"""From the options to a board: read every source, leave out what may not be compared, score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trajudge.annotations import open_labels
from trajudge.eval.checking.check import check_run
from trajudge.eval.data.sources import Source
from trajudge.eval.leaderboard.build import build_board
from trajudge.eval.leaderboard.records import Board
from trajudge.eval.leaderboard.settings import LeaderboardConfig
from trajudge.eval.leaderboard.sources.baselines import baseline_entries
from trajudge.eval.leaderboard.sources.entries import BoardEntry, read_runs
from trajudge.eval.leaderboard.sources.published import read_published_data
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.local.folders import refuse_repeated


def gather_board(config: LeaderboardConfig) -> Board:
    """Read and score what ``config`` names; a run with an error is left out. Raises UserError as
    the readers do, for a run that is given twice, and where nothing is left."""
    refuse_repeated(config.runs)
    left_out = _errors(config.runs)
    kept = [run for run in config.runs if run not in left_out]
    if left_out and not kept and not (config.published or config.data):
        raise UserError(f"no run may be compared: {'; '.join(left_out.values())}")
    entries = read_published_data(config.published) if config.published else []
    for spec in config.data:
        entries += baseline_entries(spec, config.annotations)
    if config.annotations and not config.data:
        labels = open_labels(config.annotations)
        source = Source("annotations", [], {}, labels)
        entries.append(BoardEntry(source, "annotations", free=True, trusted=True))
    entries += read_runs(kept)
    return build_board(entries, split=config.split, left_out=left_out.values())


def _errors(runs: Sequence[Path]) -> dict[Path, str]:
    """Say of every run that may not be compared why."""
    checks = {run: check_run(run) for run in runs}
    return {
        run: f"{run.resolve().name}: "
        + "; ".join(f.text for f in check.findings if f.severity == "error")
        for run, check in checks.items()
        if not check.comparable
    }
