"""The options that the commands on rules share."""

from __future__ import annotations

import argparse

from trajudge.util.commands import OptionAdder, Parser

# As rules.dialects.DIALECTS, which --help does not wait for; a test compares them.
DIALECT_NAMES = ("webarena", "webchorearena", "visualwebarena", "webarena-lite", "verified", "real")


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


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--sites`` and ``--site``."""
    add = OptionAdder(parser)
    add.file("--sites", "the sites' addresses, as the package has them")
    add.repeated(
        "--site",
        "SITE=URL",
        "one site's address (default: the page's on the benchmark's own port for the site)",
        default=[],
    )
