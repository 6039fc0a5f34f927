"""What agents reach: ``trajudge env results RECORDED... --configs CASES``.

Success by agent over all applications with the hierarchical bootstrap over application, scenario,
configuration and run (paper 001, section 4.3), by level, application and difficulty dimension, how
far each axis moves it (matched pairs, section 16), turns and cost. Runs whose success is open to
argument are left out and counted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from trajudge.environments.analysis.agent_results import results
from trajudge.environments.analysis.agent_tables import tables
from trajudge.environments.analysis.outcomes import read_outcomes
from trajudge.eval.reporting.rendering import render
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.exits import DONE, Parser, user_errors
from trajudge.trajectories.util.terminal import terminal_console


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="trajudge env results", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="RECORDED")
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("results.json"), help="file to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default 0)")
    options = parser.parse_args(arguments)
    content = results(read_outcomes(options.folders, options.configs), options.seed)
    write_bytes(options.out, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    console = terminal_console(soft_wrap=True)
    console.print(render(tables(content), "table"))
    for note in sorted({note for entry in content.values() for note in entry["summary"]["notes"]}):
        console.print(f"note: {note}")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
