"""``trajudge robust``: what the verdicts of judges survive."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.trajectories.util.exits import OK, TextParser, command
from trajudge.trajectories.util.options import whole

_DESCRIPTION = """\
Compare a judge's verdicts on runs that were changed in known ways with its verdicts on the runs as
they were: how often claims, instructions on the page and forged evidence make it accept a failure,
and what is left of its precision.

  trajudge data perturb --data sample --limit 100 --out attacked
  trajudge judge --data attacked --judge heuristic --out runs/attacked
  trajudge robust runs/attacked --attacked attacked
"""
_FILES = """\
robustness.json and robustness.csv in --out: per judge every perturbation with its rates, and
precision under each attack. A judge that failed is no "no": it lost coverage.
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(prog="trajudge robust", description=_DESCRIPTION, epilog=_FILES)
    add = made.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="run of a judge on the changed runs")
    add(
        "--attacked",
        type=Path,
        required=True,
        metavar="DIR",
        help="what trajudge data perturb wrote",
    )
    add("--seed", type=whole, default=0, metavar="N", help="seed of the bootstrap (default: 0)")
    add("--full", action="store_true", help="all perturbations")
    add("--out", type=Path, default=Path("robustness"), metavar="DIR", help="default: robustness")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Measure, write and print."""
    from trajudge.robustness.measures.report import measured, write_robustness  # noqa: PLC0415 - slow
    from trajudge.robustness.measures.screen import screen  # noqa: PLC0415

    judges = measured(options.runs, options.attacked, options.seed)
    files = write_robustness(judges, options.out)
    sys.stdout.write(screen(judges, files, full=options.full))
    return OK


if __name__ == "__main__":
    sys.exit(main())
