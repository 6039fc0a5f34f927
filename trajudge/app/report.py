"""``trajudge report RUN… --out report.html``: what judges scored and got wrong, as one file."""

from __future__ import annotations

import argparse
import sys

from trajudge.app.reports.options import parser
from trajudge.util.commands import OK, command, read_settings


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Write the report that the command line names; the exit code."""
    from trajudge.util.errors import UserError  # noqa: PLC0415 - --help needs none of these

    if not options.runs and options.judgments is None:
        raise UserError("nothing to report: give the folder of a run, or --judgments DIR")
    from trajudge.app.reports.settings import ReportConfig  # noqa: PLC0415
    from trajudge.app.reports.write import write_report  # noqa: PLC0415
    from trajudge.eval.settings import ScoreConfig  # noqa: PLC0415

    score = read_settings(ScoreConfig, options)
    sys.stdout.write(write_report(read_settings(ReportConfig, options, score=score)))
    return OK


if __name__ == "__main__":
    sys.exit(main())
