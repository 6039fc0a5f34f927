"""``trajudge robust``: what the verdicts of judges survive."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.runs.options import request_of
from trajudge.robustness.options import parser
from trajudge.util.commands import OK, command, read_settings
from trajudge.util.errors import UserError
from trajudge.util.files import refuse_repeated


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Change and judge, where judges are named; measure, write and print. Where one of several
    judges fails, the others are shown before its error is raised."""
    from trajudge.robustness.judging import (  # noqa: PLC0415 - slow
        JudgedRuns,
        RobustConfig,
        judge_changed_runs,
    )
    from trajudge.robustness.showing import show_measured  # noqa: PLC0415

    config = read_settings(RobustConfig, options)
    named = bool(options.judge or options.model)
    if config.drift and config.drift.is_file():
        from trajudge.robustness.drift.checking import check_drift  # noqa: PLC0415

        return check_drift(request_of(options) if named else None, config)
    if not options.runs and not named:
        raise UserError("RUN is missing: name runs with --attacked DIR, or judges with --judge")
    _check_places(options)
    if named:
        judged = judge_changed_runs(request_of(options), config)
        if judged.code != OK or not judged.folders:
            return judged.code
    elif config.attacked is None:
        raise UserError("--attacked is missing: name the folder that the runs judged")
    else:
        judged = JudgedRuns(OK, (), config.attacked)
    known = {run.resolve() for run in options.runs}
    folders = (*options.runs, *(one for one in judged.folders if one.resolve() not in known))
    show_measured(judged._replace(folders=folders), options.data, config, full=options.full)
    if judged.failed:
        raise judged.failed
    if config.drift:
        from trajudge.robustness.drift.checking import freeze  # noqa: PLC0415

        freeze(config.drift, folders, judged.attacked)
    return OK


def _check_places(options: argparse.Namespace) -> None:
    """Look at what is read and written at the end before a judge is asked. Raises UserError."""
    from trajudge.eval.store.run_folder import read_manifest  # noqa: PLC0415 - not for --help
    from trajudge.robustness.measures.report import read_variants  # noqa: PLC0415
    from trajudge.util.files import check_file  # noqa: PLC0415

    if options.drift is not None:
        check_file(options.drift, "--drift")
    refuse_repeated(options.runs)
    for run in options.runs:
        read_manifest(run)
    if options.attacked is not None:
        read_variants(options.attacked)


if __name__ == "__main__":
    sys.exit(main())
