"""``trajudge select RUN…``: choose the judge and threshold that filter trajectories."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.trajectories.util.exits import FAILURES, OK, Parser, user_errors
from trajudge.trajectories.util.options import read_settings, whole

_DESCRIPTION = """\
Choose the judge, and the threshold on its score, that filters trajectories for fine-tuning: those
candidates that meet a target with the confidence asked for, after correcting for how many were
tried. The candidates are frozen in a file before a label is read.

  trajudge select runs/a runs/b --target-precision 0.8 --rollout-price 0.05
  trajudge select runs/a runs/b --target-precision 0.8 --freeze --out plan
  trajudge select runs/a runs/b --candidates plan/candidates.json
"""
_EPILOG = "exit codes: 0 a judge qualifies, 1 none does, 2 a mistake in the call or its files"
_STALE = "the judgments are not those that the plan was made from\n"


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge select",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        old={
            "--only": "--judge",
            "--joint-only": "--ensembles-only",
            "--threshold": "--thresholds",
        },
    )
    add = made.add_argument
    add("runs", nargs="*", type=Path, metavar="RUN", help="folder of a run")
    add("--judgments", type=Path, metavar="DIR", help="in AgentRewardBench's published layout")
    add("--annotations", metavar="KIND:PATH", help="expert labels (default: those of the data)")
    add("--out", type=Path, metavar="DIR", help="default: selections/, named by the plan")
    add("--freeze", action="store_true", help="only write the plan; no label is read")
    add("--candidates", type=Path, metavar="FILE", help="a frozen plan, instead of what follows")
    add("--plot", type=Path, metavar="FILE", help="precision against yield, .png, .svg or .pdf")
    add("--full", action="store_true", help="print decision.txt instead of one screen")
    add("--json", action="store_true", help="print decision.json instead of the text")
    _plan_options(made.add_argument_group("the plan"))
    _candidate_options(made.add_argument_group("the plan's candidates and prices"))
    return made


def _plan_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    target = group.add_mutually_exclusive_group()
    target.add_argument(
        "--target-precision",
        type=float,
        metavar="RATE",
        help="at least this share of the accepted trajectories succeeded",
    )
    target.add_argument(
        "--max-false-positives",
        type=float,
        metavar="RATE",
        help="at most this share of the failed trajectories is accepted",
    )
    add("--confidence", type=float, metavar="LEVEL", help="default: 0.95")
    add("--correction", choices=("fixed-sequence", "max-t"), help="default: fixed-sequence")
    add(
        "--every-benchmark",
        action="store_true",
        help="the target has to be met on every benchmark, not only overall",
    )
    add("--split", choices=("dev", "test", "all"), help="of the annotations (default: all)")
    add("--seed", type=whole, metavar="N", help="seed of the resampling (default: 0)")
    add(
        "--margin",
        type=float,
        metavar="M",
        help="transfer the choice to another benchmark only where no two benchmarks differ by more "
        "than this in their true- and false-positive rates (default: 0.1)",
    )


def _candidate_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--judge", action="append", metavar="NAME", help="only this judge; may be repeated")
    add(
        "--ensembles-only",
        action="store_true",
        help="only the panels and cascades: one score named beforehand is tested more sharply",
    )
    add("--panel", action="append", metavar="A,B,…", help="the mean of several judges")
    add("--cascade", action="append", metavar="A,B,…", help="B is asked where A accepts")
    add(
        "--thresholds",
        action="append",
        metavar="JUDGE=T,T,…",
        help="thresholds on a score (default: 12 at most, spread over the scores from 0.5)",
    )
    add("--rollout-price", type=float, metavar="DOLLARS", help="of one trajectory")
    add("--training-price", type=float, metavar="DOLLARS", help="of one accepted trajectory")
    add(
        "--judgment-price",
        action="append",
        metavar="[JUDGE=]DOLLARS",
        help="of one trajectory (default: what the runs paid)",
    )


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Freeze, read the labels, decide and write; return the exit code."""
    options = parser().parse_args(arguments)
    from trajudge.eval.select.output import printed  # noqa: PLC0415
    from trajudge.eval.select.plan import FILE  # noqa: PLC0415
    from trajudge.eval.select.plot import check_plot, plot  # noqa: PLC0415
    from trajudge.eval.select.selecting import freeze_plan, select  # noqa: PLC0415
    from trajudge.eval.select.settings import PlanConfig, SelectConfig  # noqa: PLC0415
    from trajudge.eval.select.text import counted  # noqa: PLC0415

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
