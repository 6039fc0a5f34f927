"""``trajudge rules blind``: score agents that never see a page on a set of tasks.

    trajudge rules blind --tasks test.raw.json
    trajudge rules blind --tasks test.raw.json --answers gpt=answers.json --out blind

``trajudge.rules.audit.scoring`` scores any evaluator of ``trajudge.rules.verdict`` from Python.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajudge.rules.options import add_task_options, rules_parser
from trajudge.util.commands import OK, OptionAdder, command
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.rules.audit.agents import BlindAgent


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = rules_parser(
        "blind",
        __doc__,
        "0 done, 2 a mistake in the call or its files, 130 interrupted",
    )
    add_task_options(made)
    made.add_argument(
        "--answers",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="another agent, such as a model without a browser: a JSON object of answers by "
        "task id; may be repeated",
    )
    OptionAdder(made).output_folder("--out", "write naive.json and naive.csv")
    return made


def _recorded(option: str) -> BlindAgent:
    from trajudge.rules.audit.agents import recorded  # noqa: PLC0415
    from trajudge.rules.reading import decode, read_bytes  # noqa: PLC0415

    name, separator, file = option.partition("=")
    if not (name and separator and file):
        raise UserError(f"--answers {option}: write NAME=FILE, such as gpt=answers.json")
    return recorded(name, decode(read_bytes(Path(file)), dict[str, Any], file))


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Score the blind agents and show, and with ``--out`` write, what they pass."""
    from trajudge.rules.audit.scoring import compare  # noqa: PLC0415 - --help needs none of these
    from trajudge.rules.audit.suites import open_tasks  # noqa: PLC0415

    tasks = open_tasks(options.tasks, options.dialect, options.mode)
    compare(tasks, [_recorded(option) for option in options.answers], options.out)
    return OK


if __name__ == "__main__":
    sys.exit(main())
