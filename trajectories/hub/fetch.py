"""``trajudge data fetch DATASET``: download a published benchmark, or a part of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.trajectories.util.exits import Parser, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge data fetch",
        description="Fetch a benchmark, or a part of it, from the Hugging Face Hub.",
        old={"--dest": "--out"},
    )
    add = made.add_argument
    add("dataset", choices=["agentrewardbench", "cuaverifierbench"], help="the benchmark")
    for name, metavar in (("benchmark", "NAME"), ("agent", "NAME"), ("task", "ID")):
        add(
            f"--{name}",
            action="append",
            metavar=metavar,
            help=f"only this {name}; may be repeated",
        )
    add(
        "--what",
        metavar="KIND,...",
        help="of trajectories,screenshots,judgments,annotations (default: "
        "trajectories,screenshots)",
    )
    add(
        "--screenshots",
        metavar="last|all|none|N",
        help="per trajectory: the last one (default), all, none, or the last N",
    )
    add("--judge", action="append", metavar="NAME", help="judgments of this judge only")
    add(
        "--no-images",
        action="store_true",
        help="of cuaverifierbench: all but the screenshots, without transferring them",
    )
    add("--revision", metavar="NAME", help="branch, tag or commit (default: main, or as pinned)")
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="default: the user's cache; of agentrewardbench: TRAJUDGE_DATA first",
    )
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Fetch the parts and return the exit code; an interruption keeps what was fetched."""
    from trajudge.trajectories.hub.commands import FetchConfig, fetch  # noqa: PLC0415 - --help needs none
    from trajudge.trajectories.util.options import read_settings  # noqa: PLC0415

    return fetch(read_settings(FetchConfig, options))


if __name__ == "__main__":
    sys.exit(main())
