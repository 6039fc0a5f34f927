"""The options that the commands on rules share."""

from __future__ import annotations

import argparse
from typing import get_args

from trajudge.rules.settings import DialectName
from trajudge.util.commands import OptionAdder, Parser

DIALECT_NAMES = get_args(DialectName)


def rules_parser(name: str, purpose: str, exit_codes: str) -> Parser:
    """Make the parser of ``trajudge rules NAME``; ``purpose`` is shown to its first blank line."""
    first, codes = purpose.split("\n\n", maxsplit=1)[0], f"exit codes: {exit_codes}"
    return Parser(prog=f"trajudge rules {name}", description=first, epilog=codes)


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--tasks``, ``--dialect`` and ``--mode``."""
    add = OptionAdder(parser)
    add.file("--tasks", "the task file", required=True)
    add.choice("--dialect", DIALECT_NAMES, "dialect of the tasks (default: recognised)")
    add.value(
        "--mode", "MODE", "Verified: sound, release-1.2.3; WebArena: original (default: the first)"
    )
