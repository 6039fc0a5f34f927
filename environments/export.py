"""Static copies of cases, for sharing: ``trajudge env export --configs CASES --out DIR``.

A bundle (``DIR/bundles/NUMBER``) is a folder of plain pages with relative links, charts as PNG
files, ``goal.txt``, ``README.txt`` and ``manifest.json`` with the hashes; open its ``index.html``.
It holds no answer and no operation code. ``DIR/keys.jsonl`` tells which case a bundle was made from
and is not to be shared: who has it and this software can work the answer out.

A copy is weaker than a served run: all pages lie open as files, nothing is logged, tampering is not
seen, pages are the same for everybody so that a replay of recorded clicks works, and neither noise
nor the isolation of an origin of its own is there. Forms are shown, disabled. So only cases whose
task is done by following links are exported; the others are refused with the reason.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.environments.model.case import read_cases
from trajudge.environments.serving.static_copy import PAGES
from trajudge.environments.serving.static_export import export, summary_table
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, FAILURES, Parser, user_errors
from trajudge.trajectories.util.terminal import terminal_console

# --- on disk -------------------------------------------------------------------------------------


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: 0 if anything was exported, else 1."""
    parser = Parser(
        prog="trajudge env export",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--configs", type=Path, required=True, help="file of cases")
    parser.add_argument("--out", type=Path, default=Path("exported"), help="folder to write into")
    parser.add_argument("--pages", type=int, default=PAGES, help=f"of a copy (default {PAGES})")
    options = parser.parse_args(arguments)
    if options.pages < 1:
        raise UserError(f"--pages is {options.pages}: give a number from 1")
    cases = read_cases(options.configs)
    if not cases:
        raise UserError(f"{options.configs} holds no case")
    refused = export(cases, options.out, options.pages)
    console = terminal_console()
    console.print(summary_table(cases, refused))
    console.print(f"share {options.out / 'bundles'}; keep {options.out / 'keys.jsonl'} to yourself")
    return DONE if len(refused) < len(cases) else FAILURES


if __name__ == "__main__":
    sys.exit(main())
