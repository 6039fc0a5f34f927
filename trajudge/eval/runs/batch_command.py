"""``trajudge run batch``: the batches that this machine submitted, and what becomes of them."""

from __future__ import annotations

import argparse
import sys

from trajudge.util.commands import OK, OptionAdder, TextParser, command

_DESCRIPTION = """\
Show the batches that  trajudge judge --batch  submitted, cancel them, or collect those that have
ended. Replies go into the cache; the same  trajudge judge  command then writes the judgments.

  trajudge run batch status
  trajudge run batch cancel BATCH
  trajudge run batch resume
"""


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command's options."""
    made = TextParser(prog="trajudge run batch", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.choice("action", ("status", "cancel", "resume"), "what to do")
    add.value("batches", "BATCH", "these batches only (default: all open ones)", nargs="*")
    add.value("--cache", "FILE", "replies, as of trajudge judge; the ledger stands beside")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Do the action and print what is there; return the exit code."""
    from trajudge.eval.runs.batches import BatchAction, carry_out  # noqa: PLC0415 - --help needs none
    from trajudge.util.commands import read_settings  # noqa: PLC0415

    sys.stdout.write(carry_out(read_settings(BatchAction, options)))
    return OK


if __name__ == "__main__":
    sys.exit(main())
