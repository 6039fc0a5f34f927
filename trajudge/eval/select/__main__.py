"""``trajudge select RUN…``: choose the judge and threshold that filter trajectories."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.select.options import parser
from trajudge.util.commands import FAILURES, OK, command, read_settings

_STALE = "the judgments are not those that the plan was made from\n"


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Freeze, read the labels, decide and write; return the exit code."""
    from trajudge.eval.select.output import printed  # noqa: PLC0415
    from trajudge.eval.select.plan import FILE  # noqa: PLC0415
    from trajudge.eval.select.plot import check_plot, plot  # noqa: PLC0415
    from trajudge.eval.select.selecting import freeze_plan, select  # noqa: PLC0415
    from trajudge.eval.select.sentences import counted  # noqa: PLC0415
    from trajudge.eval.select.settings import PlanConfig, SelectConfig  # noqa: PLC0415

    if options.plot:
        check_plot(options.plot)
    config = read_settings(SelectConfig, options, plan=read_settings(PlanConfig, options))
    if options.freeze:
        frozen = freeze_plan(config)
        sys.stderr.write(_STALE if frozen.is_stale else "")
        file = frozen.folder / FILE
        sys.stdout.write(f"{file}: frozen, {counted(frozen.plan)}; no label was read\n")
        return OK
    decision, folder, is_stale = select(config)
    sys.stderr.write(_STALE if is_stale else "")
    if options.plot:
        plot(decision, options.plot)
    sys.stdout.write(printed(decision, folder, as_json=options.json, full=options.full))
    return FAILURES if decision.chosen is None else OK


if __name__ == "__main__":
    sys.exit(main())
