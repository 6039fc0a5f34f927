"""``trajudge data fetch DATASET``: download a published benchmark, or a part of it."""

from __future__ import annotations

import argparse
import sys

from trajudge.util.commands import OptionAdder, Parser, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge data fetch",
        description="Fetch a benchmark, or a part of it, from the Hugging Face Hub.",
    )
    add = OptionAdder(made)
    add.choice("dataset", ["agentrewardbench", "cuaverifierbench"], "the benchmark")
    for name, metavar in (("benchmark", "NAME"), ("agent", "NAME"), ("task", "ID")):
        add.repeated(f"--{name}", metavar, f"only this {name}; may be repeated")
    add.value(
        "--what",
        "KIND,...",
        "of trajectories,screenshots,judgments,annotations (default: trajectories,screenshots)",
    )
    add.value(
        "--screenshots",
        "last|all|none|N",
        "per trajectory: the last one (default), all, none, or the last N",
    )
    add.repeated("--judge", "NAME", "judgments of this judge only")
    add.switch(
        "--no-images", "of cuaverifierbench: all but the screenshots, without transferring them"
    )
    add.value("--revision", "NAME", "branch, tag or commit (default: main, or as pinned)")
    add.output_folder(
        "--out", "default: the user's cache; of agentrewardbench: TRAJUDGE_DATA first"
    )
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Fetch the parts and return the exit code; an interruption keeps what was fetched."""
    from trajudge.trajectories.hub import FetchConfig, fetch  # noqa: PLC0415 - --help needs none
    from trajudge.util.commands import read_settings  # noqa: PLC0415

    return fetch(read_settings(FetchConfig, options))


if __name__ == "__main__":
    sys.exit(main())
