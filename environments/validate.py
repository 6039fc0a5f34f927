"""Solve cases in real Chromium: ``trajudge env validate --configs CASES --out DIR``.

The oracle's plan must solve every case at two viewports, with noise and without (see
``environments.recording.validation``). ``cases.jsonl`` in DIR holds those that passed,
``rejects.jsonl`` the others with the failed step, beside its tree and its screenshot;
``summary.json`` the rates. A validation that was killed goes on where it was.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from trajudge.environments.model.case import read_cases, write_cases
from trajudge.environments.recording.validation_run import summary, summary_table, validate_cases
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.exits import DONE, FAILURES, Parser, user_errors
from trajudge.trajectories.util.terminal import terminal_console


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="trajudge env validate", description=__doc__)
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("validated"), help="folder to write into")
    parser.add_argument("--thorough", action="store_true", help="every viewport with every noise")
    parser.add_argument("--seed", type=int, default=0, help="seed of the runs (default 0)")
    parser.add_argument("--workers", type=int, default=1, help="browsers side by side")
    options = parser.parse_args(arguments)
    cases = read_cases(options.configs)
    found = validate_cases(
        cases, options.out, thorough=options.thorough, seed=options.seed, workers=options.workers
    )
    passed = [case for case in cases if found[case.id] is None]
    rejects = ({"case": name, **broken} for name, broken in found.items() if broken is not None)
    lines = b"".join(orjson.dumps(reject) + b"\n" for reject in rejects)
    rows = summary(cases, found)
    write_cases(options.out / "cases.jsonl", passed)
    write_bytes(options.out / "rejects.jsonl", lines)
    write_bytes(options.out / "summary.json", orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    terminal_console().print(summary_table(rows))
    return DONE if len(passed) == len(cases) else FAILURES


if __name__ == "__main__":
    sys.exit(main())
