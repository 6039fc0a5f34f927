"""``trajudge data convert``: write trajectories of any format in our own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.util.commands import FAILURES, OK, OptionAdder, TextParser, command
from trajudge.util.terminal import count_of

_DESCRIPTION = """\
Read trajectories of any format and write them in trajudge's own: a folder with one line a
trajectory and the pictures beside it. Labels are not part of it.

  trajudge data convert logs/run.eval converted/
  trajudge data convert ./my_loader.py:logs/ converted/
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    made = TextParser(prog="trajudge data convert", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.value("source", "IN", "KIND:PATH, a path whose kind is detected, or FILE.py:PATH")
    add.value("target", "OUT", "a new folder, or one without trajectories", type=Path)
    add.file("--goals", "JSON, JSON Lines or CSV of task_id and goal, for logs without them")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Convert, name what could not be read, and return the exit code (1: something was not)."""
    from trajudge.trajectories import store  # noqa: PLC0415 - --help needs none of it
    from trajudge.trajectories.goals import read_goals  # noqa: PLC0415
    from trajudge.trajectories.loaders import open_source, parse_source  # noqa: PLC0415
    from trajudge.trajectories.loading import Readable  # noqa: PLC0415
    from trajudge.trajectories.sample import resolve_sample  # noqa: PLC0415
    from trajudge.util.errors import naming  # noqa: PLC0415

    source = resolve_sample(options.source)
    goals = read_goals(options.goals) if options.goals else None
    with naming("IN"):
        store.check_target(options.target, parse_source(source)[1], "OUT")
        read = Readable(open_source(source, goals=goals))
    file = store.write(options.target, read, on_lost=read.lose)
    sys.stdout.write(f"{file}: {count_of(read.converted, 'trajectory')}\n")
    if read.lost:
        sys.stderr.write(f"warning: {read.lost_pictures(options.target)}\n")
    return FAILURES if read.failed else OK


if __name__ == "__main__":
    sys.exit(main())
