"""``trajudge data verdicts``: published verdicts as runs, to be scored without a call."""

from __future__ import annotations

import argparse
import sys

from trajudge.util.commands import OK, OptionAdder, TextParser, command

_DESCRIPTION = """\
Write the verdicts that were published beside a data set as runs, a folder for each judge
(universal-verifier@published, ...), which score, compare and rank like our own. No model is asked.

  trajudge data verdicts fara:runs/ --out verdicts/
  trajudge score verdicts/*
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    made = TextParser(prog="trajudge data verdicts", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.value("source", "KIND:PATH", "the data that the verdicts were published with")
    add.output_folder("--out", "gets a folder for each judge", required=True)
    add.labels("expert labels (default: those of the data)")
    add.choice(
        "--aborted",
        ("keep", "exclude"),
        "runs that broke off (Fara's authors: exclude; default: keep)",
        default="keep",
    )
    add.choice(
        "--over-budget",
        ("keep", "failure"),
        "verdicts on runs that gave no answer (Fara's authors: failure; default: keep)",
        default="keep",
    )
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Import the verdicts, print the folders, and return the exit code."""
    from trajudge.eval.imported import ImportConfig, import_verdicts  # noqa: PLC0415 - --help needs none of it
    from trajudge.util.commands import read_settings  # noqa: PLC0415

    for run in import_verdicts(read_settings(ImportConfig, options)):
        ended = ", ".join(f"{count} {status}" for status, count in sorted(run.statuses.items()))
        sys.stdout.write(f"{run.folder}: {ended}; {run.labelled} labelled\n")
    return OK


if __name__ == "__main__":
    sys.exit(main())
