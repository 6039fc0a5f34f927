"""``trajudge robust``: what the verdicts of judges survive."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.eval.runs.options import request_of
from trajudge.robustness.options import parser
from trajudge.trajectories.util.exits import OK, command
from trajudge.trajectories.util.options import read_settings

if TYPE_CHECKING:
    from trajudge.robustness.cards.writing import MeasuredRuns
    from trajudge.robustness.measures.adaptive import AdaptiveSuccess
    from trajudge.robustness.measures.report import JudgeRobustness


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Change and judge, where judges are named; measure, write and print."""
    from trajudge.robustness.judging import RobustConfig, judge_changed_runs  # noqa: PLC0415 - slow
    from trajudge.robustness.measures.report import measured  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    config = read_settings(RobustConfig, options)
    folders, attacked, is_source = tuple(options.runs), config.attacked, False
    adaptive: Mapping[str, AdaptiveSuccess] = {}
    if config.drift and config.drift.is_file():
        from trajudge.robustness.drift.checking import check_drift  # noqa: PLC0415

        named = bool(options.judge or options.model)
        return check_drift(request_of(options) if named else None, config)
    if not folders or options.judge or options.model:
        if not options.judge and not options.model:
            raise UserError("RUN is missing: name runs with --attacked DIR, or judges with --judge")
        judged = judge_changed_runs(request_of(options), config)
        if judged.code != OK or not judged.folders:
            return judged.code
        is_source = config.attacked is None
        folders, attacked = (*folders, *judged.folders), judged.attacked
        adaptive = judged.adaptive
    if attacked is None:
        raise UserError("--attacked is missing: name the folder that the runs judged")
    judges = [
        one._replace(adaptive=adaptive.get(one.judge))
        for one in measured(folders, attacked, config.seed)
    ]
    from trajudge.robustness.cards.data import card_data  # noqa: PLC0415
    from trajudge.robustness.cards.writing import MeasuredRuns  # noqa: PLC0415

    data = card_data(attacked, options.data, is_source=is_source)
    _show(judges, MeasuredRuns(folders, attacked, data), config.out, full=options.full)
    if config.drift:
        from trajudge.robustness.drift.checking import freeze  # noqa: PLC0415

        freeze(config.drift, folders, attacked)
    return OK


def _show(judges: Sequence[JudgeRobustness], runs: MeasuredRuns, out: Path, *, full: bool) -> None:
    """Write the files and print: judges with and without defences side by side, where there are
    any, else every judge's attacks."""
    from trajudge.robustness.cards.writing import write_results  # noqa: PLC0415 - slow
    from trajudge.robustness.defences.comparison import compared, comparison_screen  # noqa: PLC0415
    from trajudge.robustness.measures.screen import screen  # noqa: PLC0415

    rows = compared(judges, runs.folders)
    files = write_results(judges, rows, runs, out)
    if rows:
        sys.stdout.write(comparison_screen(rows, files))
    if full or not rows:
        sys.stdout.write(screen(judges, files, full=full))


if __name__ == "__main__":
    sys.exit(main())
