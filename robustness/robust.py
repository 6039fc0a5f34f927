"""``trajudge robust``: what the verdicts of judges survive."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.runs.options import request_of
from trajudge.robustness.options import parser
from trajudge.trajectories.util.exits import OK, command
from trajudge.trajectories.util.options import read_settings


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Change and judge, where judges are named; measure, write and print."""
    from trajudge.robustness.judging import RobustConfig, judge_changed_runs  # noqa: PLC0415 - slow
    from trajudge.robustness.measures.report import measured, write_robustness  # noqa: PLC0415
    from trajudge.robustness.measures.screen import screen  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    config = read_settings(RobustConfig, options)
    folders, attacked = tuple(options.runs), config.attacked
    if not folders or options.judge or options.model:
        if not options.judge and not options.model:
            raise UserError("RUN is missing: name runs with --attacked DIR, or judges with --judge")
        judged = judge_changed_runs(request_of(options), config)
        if judged.code != OK or not judged.folders:
            return judged.code
        folders, attacked = (*folders, *judged.folders), judged.attacked
    if attacked is None:
        raise UserError("--attacked is missing: name the folder that the runs judged")
    judges = measured(folders, attacked, config.seed)
    files = write_robustness(judges, config.out)
    sys.stdout.write(screen(judges, files, full=options.full))
    return OK


if __name__ == "__main__":
    sys.exit(main())
