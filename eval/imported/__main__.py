"""``trajudge data verdicts``: published verdicts as runs, to be scored without a call."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.trajectories.util.exits import OK, TextParser, command

_DESCRIPTION = """\
Write the verdicts that were published beside a data set as runs, a folder for each judge
(universal-verifier@published, ...), which score, compare and rank like our own. No model is asked.

  trajudge data verdicts fara:runs/ --out verdicts/
  trajudge score verdicts/*
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    made = TextParser(prog="trajudge data verdicts", description=_DESCRIPTION)
    add = made.add_argument
    add("source", metavar="KIND:PATH", help="the data that the verdicts were published with")
    add("--out", type=Path, required=True, metavar="DIR", help="gets a folder for each judge")
    add("--annotations", metavar="KIND:PATH", help="expert labels (default: those of the data)")
    add(
        "--aborted",
        choices=("keep", "exclude"),
        default="keep",
        help="runs that broke off (Fara's authors: exclude; default: keep)",
    )
    add(
        "--over-budget",
        choices=("keep", "failure"),
        default="keep",
        help="verdicts on runs that gave no answer (Fara's authors: failure; default: keep)",
    )
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Import the verdicts, print the folders, and return the exit code."""
    from trajudge.eval.imported.folders import ImportConfig, import_verdicts  # noqa: PLC0415 - --help needs none of it
    from trajudge.trajectories.util.options import read_settings  # noqa: PLC0415

    for run in import_verdicts(read_settings(ImportConfig, options)):
        ended = ", ".join(f"{count} {status}" for status, count in sorted(run.statuses.items()))
        sys.stdout.write(f"{run.folder}: {ended}; {run.labelled} labelled\n")
    return OK


if __name__ == "__main__":
    sys.exit(main())
