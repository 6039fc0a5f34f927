"""``python -m benchmarks.rules_against_package``: the release mode beside the installed package.

python -m benchmarks.rules_against_package [--cases N] [--seed S] [--package PYTHON] [--show N]

Pairs of values, runs that have nothing to do with their task, and honest runs with one to three
changes, all drawn from the seed, are judged by both. What differs is reduced and printed.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.rules.against_package.comparing import SHARES, Comparison, Tally
from tests.rules.against_package.environment import PACKAGE, PYTHON
from tests.rules.against_package.peer import PackageProcess
from trajudge.util.machine import NoEnvironment


def main() -> int:
    """Compare, print, and return 1 where the two sides disagree."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules_against_package")
    parser.add_argument("--cases", type=int, default=5_000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--package", metavar="PYTHON", help=f"where the package is installed; also {PYTHON}"
    )
    parser.add_argument("--show", type=int, default=20, help="cases to reduce and print")
    options = parser.parse_args()
    try:
        python = PACKAGE.python(options.package)
    except NoEnvironment as error:
        print(error, file=sys.stderr)
        return 2
    started = time.perf_counter()
    with PackageProcess(python) as process:
        tally = Comparison(process, options.seed, options.show).run(options.cases)
    for disagreement in tally.disagreements:
        print(disagreement, end="\n\n")
    _print(tally, time.perf_counter() - started, options.seed)
    return 1 if tally.differing else 0


def _print(tally: Tally, seconds: float, seed: int) -> None:
    print(f"{'class (seed ' + str(seed) + ')':24}{'cases':>9}{'differing':>11}  package's verdicts")
    for label in SHARES:
        verdicts = ", ".join(
            f"{verdict} {count:,}"
            for (where, verdict), count in sorted(tally.verdicts.items())
            if where == label
        )
        print(f"{label:24}{tally.cases[label]:9,}{tally.differing[label]:11,}  {verdicts}")
    total = sum(tally.cases.values())
    print(f"{'all':24}{total:9,}{sum(tally.differing.values()):11,}")
    print(
        f"processor time: package {tally.package.cpu:.1f} s, ours {tally.ours.cpu:.1f} s; "
        f"{seconds:.1f} s in all"
    )


if __name__ == "__main__":
    sys.exit(main())
