"""``trajudge judges list`` shows the judges, ``show NAME`` one of them, ``fidelity`` what they
follow of their sources."""

from __future__ import annotations

import argparse
import sys

from trajudge.trajectories.util.exits import OK, Parser, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    command_line = Parser(prog="trajudge judges", description=__doc__)
    commands = command_line.add_subparsers(dest="command", required=True, help="what to show")
    commands.add_parser("list", help="every judge: what it sees, asks and answers")
    show = commands.add_parser(
        "show",
        help="a judge's card, options and prompts",
        old={"--option": "--judge-option"},
    )
    show.add_argument("name", metavar="NAME", help="the judge")
    show.add_argument(
        "--judge-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the judge; may be repeated",
    )
    fidelity = commands.add_parser("fidelity", help="what judges follow of their sources")
    fidelity.add_argument("name", metavar="NAME", nargs="?", help="one judge (default: all)")
    return command_line


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Print what is asked for; the exit code (``trajectories.util.exits``)."""
    if options.command == "list":
        _list()
        return OK
    if options.command == "fidelity":
        _fidelity(options.name)
        return OK
    from trajudge.judges.options import named_options  # noqa: PLC0415 - --help needs none of these
    from trajudge.judges.show import described  # noqa: PLC0415
    from trajudge.trajectories.loaders import open_source  # noqa: PLC0415
    from trajudge.trajectories.model import Trajectory  # noqa: PLC0415
    from trajudge.trajectories.sample import SAMPLE, resolve_sample  # noqa: PLC0415

    read = open_source(resolve_sample(SAMPLE))
    sample = next(item for item in read if isinstance(item, Trajectory))
    sys.stdout.write(
        described(options.name, named_options("--judge-option", options.judge_option), sample)
    )
    return OK


def _list() -> None:
    from trajudge.judges.show import HEAD, rows, write_table  # noqa: PLC0415

    write_table(HEAD, rows())


def _fidelity(name: str | None) -> None:
    from trajudge.judges.cards.fidelity import HEAD, fidelity_rows  # noqa: PLC0415
    from trajudge.judges.show import write_table  # noqa: PLC0415

    write_table(HEAD, list(fidelity_rows(name)))


if __name__ == "__main__":
    sys.exit(main())
