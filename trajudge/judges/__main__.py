"""``trajudge judges list`` shows the judges, ``show NAME`` one of them, ``fidelity`` what they
follow of their sources."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from trajudge.util.commands import OK, Parser, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    command_line = Parser(prog="trajudge judges", description=__doc__)
    commands = command_line.add_subparsers(dest="command", required=True, help="what to show")
    listed = commands.add_parser("list", help="every judge: the model it needs, and what it asks")
    show = commands.add_parser(
        "show",
        help="a judge's card, options and prompts",
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
    for each, what in (
        (listed, "what judges see, their calls, answers and papers, as lines with tabs in a pipe"),
        (show, "the whole card, and the prompts for a run of the sample, instead of one screen"),
        (fidelity, "every item, as lines with tabs in a pipe"),
    ):
        each.add_argument("--full", action="store_true", help=what)
    return command_line


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Print what is asked for; the exit code (``util.commands``)."""
    from trajudge.judges.show import fidelity_screen, list_screen  # noqa: PLC0415 - --help needs none

    if options.command == "list":
        text = list_screen(full=options.full)
    elif options.command == "show":
        text = _show(options.name, options.judge_option, full=options.full)
    else:
        text = fidelity_screen(options.name, full=options.full)
    sys.stdout.write(text)
    return OK


def _show(name: str, judge_options: Iterable[str], *, full: bool) -> str:
    from trajudge.judges.options import named_options  # noqa: PLC0415 - --help needs none of these
    from trajudge.judges.show import described, judge_screen  # noqa: PLC0415
    from trajudge.trajectories.loaders import open_source  # noqa: PLC0415
    from trajudge.trajectories.model import Trajectory  # noqa: PLC0415
    from trajudge.trajectories.sample import SAMPLE, resolve_sample  # noqa: PLC0415

    read = open_source(resolve_sample(SAMPLE))
    sample = next(item for item in read if isinstance(item, Trajectory))
    show = described if full else judge_screen
    return show(name, named_options("--judge-option", judge_options), sample)


if __name__ == "__main__":
    sys.exit(main())
