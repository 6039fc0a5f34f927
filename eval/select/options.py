"""The options of ``trajudge select``."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.trajectories.util.exits import TextParser
from trajudge.trajectories.util.options import whole

_DESCRIPTION = """\
Choose the judge, and the threshold on its score, that filters trajectories for fine-tuning: those
candidates that meet a target with the confidence asked for, after correcting for how many were
tried. The candidates are frozen in a file before a label is read.

  trajudge select runs/a runs/b --target-precision 0.8 --rollout-price 0.05
  trajudge select runs/a runs/b --target-precision 0.8 --freeze --out plan
  trajudge select runs/a runs/b --candidates plan/candidates.json
"""
_EPILOG = "exit codes: 0 a judge qualifies, 1 none does, 2 a mistake in the call or its files"


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(
        prog="trajudge select",
        description=_DESCRIPTION,
        epilog=_EPILOG,
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
    first = "confidence judgments annotations judge out freeze candidates full"
    return made.show_first("target-precision", "max-false-positives", *first.split())


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
