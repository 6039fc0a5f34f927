"""Blind replay: ``trajudge env replay --configs CASES --out FILE``.

Records the oracle on each case and plays its actions back, word for word and without looking, on
the same configuration and on ones in which a single axis or every axis is another. A static
environment gives such an agent its pass@k (paper 001, section 2.1 and appendix 9); one that varies
must not. "same run" repeats the run with its codes; "same" is a new run, whose operation codes are
others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
from rich.progress import track

from trajudge.environments.analysis.blind_replay import replay, summary, table
from trajudge.environments.model.case import read_cases
from trajudge.environments.recording.recorder import open_recorder
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, Parser, user_errors
from trajudge.trajectories.util.terminal import terminal_console


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="trajudge env replay", description=__doc__)
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("replay.json"), help="file to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agents (default 0)")
    options = parser.parse_args(arguments)
    cases = read_cases(options.configs)
    if not cases:
        raise UserError(f"{options.configs} holds no case")
    errors = terminal_console(stderr=True)
    with open_recorder(options.seed) as recorder:
        outcomes = [
            outcome
            for case in track(cases, "replaying", console=errors, transient=True)
            for outcome in replay(recorder, case)
        ]
    rows = summary(outcomes)
    content = {"conditions": rows, "outcomes": [outcome._asdict() for outcome in outcomes]}
    write_bytes(options.out, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    terminal_console().print(table(rows))
    return DONE


if __name__ == "__main__":
    sys.exit(main())
