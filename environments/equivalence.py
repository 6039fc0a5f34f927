"""Replay is pass@k where nothing varies: ``trajudge env equivalence --configs CASES``.

A scripted agent that succeeds now and then does every case several times, each time from the same
start. A replay policy that keeps k of these recordings and plays a good one back blindly reaches
what pass@k says of the agent (paper 001, remark 1 and appendix 9): shown here on real runs, each
success played back in the browser.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
from rich.progress import track

from trajudge.environments.analysis.pass_at_k import attempts, summary
from trajudge.environments.model.case import read_cases
from trajudge.environments.recording.recorder import open_recorder
from trajudge.eval.reporting.rendering import Table, render
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, Parser, user_errors
from trajudge.trajectories.util.terminal import terminal_console


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="trajudge env equivalence", description=__doc__)
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--attempts", type=int, default=5, help="at every case (default 5)")
    parser.add_argument("--out", type=Path, default=Path("equivalence.json"), help="file to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agent (default 0)")
    options = parser.parse_args(arguments)
    cases = read_cases(options.configs)
    if not cases:
        raise UserError(f"{options.configs} holds no case")
    if options.attempts < 1 or options.seed < 0:
        raise UserError("--attempts needs a number from 1, --seed one from 0")
    errors = terminal_console(stderr=True)
    with open_recorder(options.seed) as recorder:
        found = [
            attempt
            for case in track(cases, "attempting", console=errors, transient=True)
            for attempt in attempts(recorder, case, options.attempts)
        ]
    rows = summary(found, options.attempts)
    content = {"rows": rows, "attempts": [attempt._asdict() for attempt in found]}
    write_bytes(options.out, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    shown = [
        (str(row["k"]), f"{100 * row['pass_at_k']:.1f}", f"{100 * row['replay']:.1f}")
        for row in rows
    ]
    title = f"Blind replay beside pass@k, {len(cases)} cases, {options.attempts} attempts each (%)"
    table = Table(title, ("k", "pass@k", "replay with k kept"), shown, names=1)
    terminal_console(soft_wrap=True).print(render([table], "table"))
    return DONE


if __name__ == "__main__":
    sys.exit(main())
