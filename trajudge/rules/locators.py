"""``trajudge rules locators``: read the locators of page checks in stored html.

    trajudge rules locators --tasks test.raw.json --runs runs.jsonl --save read.jsonl

Needs a browser (the extra ``browser`` and a chromium).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.rules.options import rules_parser
from trajudge.util.commands import OK, OptionAdder, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = rules_parser(
        "locators",
        "Read the locators of page checks in the html that runs stored.",
        "0 done, 2 a mistake in the call or its files, 130 interrupted",
    )
    add = OptionAdder(made)
    add.file("--tasks", "the task file", required=True)
    add.value("--runs", "PATH", "the runs: a folder or a file", type=Path, required=True)
    add.output_file("--save", "file to write", required=True)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Read the locators of a file of runs, and write the runs with their values."""
    import msgspec  # noqa: PLC0415 - --help needs none of these

    from trajudge.rules.output import write_text  # noqa: PLC0415
    from trajudge.rules.webarena.files import load_runs, load_tasks  # noqa: PLC0415
    from trajudge.rules.webarena.locators import read_runs  # noqa: PLC0415
    from trajudge.util.terminal import one_line  # noqa: PLC0415

    read = list(read_runs(load_tasks(options.tasks), load_runs(options.runs)))
    write_text(options.save, "".join(f"{msgspec.json.encode(run).decode()}\n" for run in read))
    sys.stdout.write(f"written: {one_line(str(options.save))}\n")
    return OK


if __name__ == "__main__":
    sys.exit(main())
