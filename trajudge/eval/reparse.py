"""``trajudge run reparse RUN``: parse the recorded replies of a run again, without a call."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.util.commands import OK, OptionAdder, TextParser, command, read_settings

_DESCRIPTION = """\
Read the replies that a run recorded again, as this version of trajudge reads them, and write the
judgments into a new folder. No model is asked. A judgment stays as it was recorded where the model
gave no reply, or where this version of the judge asks for something that was not recorded.

  trajudge run reparse runs/simplified-axtree_gpt-4o-1a2b3c4d --out again
"""


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command's options."""
    made = TextParser(prog="trajudge run reparse", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.value("run", "RUN", "folder of a run", type=Path)
    add.output_folder("--out", "a new folder for the judgments", required=True)
    add.value("--data", "KIND:PATH", "the trajectories (default: those of the run)")
    add.value("--judge", "NAME", "the judge, where the run's is in a file of your own")
    add.value("--cache", "FILE", "replies with token probabilities, as of trajudge judge")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Parse the run again and write the new folder; return the exit code."""
    from trajudge.eval.analysis import reparse  # noqa: PLC0415 - --help needs none of it

    sys.stdout.write(reparse.reparse(read_settings(reparse.ReparseConfig, options)))
    return OK


if __name__ == "__main__":
    sys.exit(main())
