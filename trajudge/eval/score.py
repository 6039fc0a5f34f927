"""``trajudge score RUN…``: score judges from the folders of their runs, without a call."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.reporting.score_options import parser
from trajudge.trajectories.util.exits import command
from trajudge.trajectories.util.options import read_settings


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Score what the command line names; the exit code."""
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415 - --help needs none of these

    if not options.runs and options.judgments is None:
        raise UserError("nothing to score: give the folder of a run, or --judgments DIR")
    if options.explain and options.mismatches is None:
        raise UserError("--explain sorts wrong verdicts: name their file with --mismatches FILE")
    for name in ("adapter", "base_url", "script"):
        if getattr(options, name) and not options.explain:
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{option} is for the model of --explain: give --explain MODEL, or leave it out"
            )
    from trajudge.eval.rescoring.report import report  # noqa: PLC0415
    from trajudge.eval.runs.settings import ScoreConfig  # noqa: PLC0415
    from trajudge.judges.calls.settings import CallConfig  # noqa: PLC0415

    calls = read_settings(CallConfig, options, seed=0)
    return report(read_settings(ScoreConfig, options, calls=calls))


if __name__ == "__main__":
    sys.exit(main())
