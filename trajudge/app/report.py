"""``trajudge report``: what judges scored and got wrong, as one file."""

from __future__ import annotations

import sys

from trajudge.app.reports.write import write_report
from trajudge.app.settings import ReportConfig
from trajudge.util.commands import OK
from trajudge.util.errors import UserError


def report(config: ReportConfig) -> int:
    """Write the report and print where it is. Raises UserError."""
    if not config.score.runs and config.score.judgments is None:
        raise UserError("nothing to report: give the folder of a run, or --judgments DIR")
    sys.stdout.write(write_report(config))
    return OK
