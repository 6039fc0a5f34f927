"""What robustness the judges have: measured, written and printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.robustness.cards.data import card_data
from trajudge.robustness.cards.writing import MeasuredRuns, write_results
from trajudge.robustness.defences.comparison import compared, comparison_screen
from trajudge.robustness.judging import JudgedRuns
from trajudge.robustness.measures.report import JudgeRobustness, measured
from trajudge.robustness.measures.screen import screen
from trajudge.robustness.settings import RobustConfig
from trajudge.util.errors import UserError
from trajudge.util.terminal import progress_bar


def show_measured(
    judged: JudgedRuns, data: str | None, config: RobustConfig, *, full: bool
) -> None:
    """Measure what was judged, write and print it; changed runs that are new are made of ``data``.
    Raises UserError."""
    try:
        with progress_bar("measuring"):
            judges = measured(judged.folders, judged.attacked, config.seed)
    except UserError as error:
        # What is left cannot be measured without the runs that failed, whose reason comes first.
        raise judged.failed or error from error
    judges = [one._replace(adaptive=judged.adaptive.get(one.judge)) for one in judges]
    known = card_data(judged.attacked, data, is_source=config.attacked is None)
    runs = MeasuredRuns(judged.folders, judged.attacked, known, config.measured)
    _show(judges, runs, config.out, full=full)


def _show(judges: Sequence[JudgeRobustness], runs: MeasuredRuns, out: Path, *, full: bool) -> None:
    """Write the files and print: judges with and without defences side by side, where there are
    any, else every judge's attacks. Files that cannot be written are told behind it."""
    rows = compared(judges, runs.folders)
    files: tuple[Path, ...] = ()
    unwritten: UserError | None = None
    try:
        files = write_results(judges, rows, runs, out)
    except UserError as error:
        unwritten = error
    if rows:
        sys.stdout.write(comparison_screen(rows, files))
    if full or not rows:
        sys.stdout.write(screen(judges, files, full=full))
    if unwritten:
        sys.stdout.flush()
        raise unwritten
