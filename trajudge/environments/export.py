"""Static copies of cases, for sharing: ``trajudge env export --cases CASES --out DIR``.

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
from pathlib import Path

from trajudge.environments.options import add_cases
from trajudge.environments.serving import PAGES
from trajudge.util.commands import FAILURES, OK, OptionAdder, TextParser, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(prog="trajudge env export", description=__doc__)
    add = OptionAdder(made)
    add_cases(made)
    add.output_folder("--out", "folder to write", default=Path("exported"))
    add.number("--pages", f"pages per copy (default: {PAGES})", default=PAGES)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Export the cases; return 0 if anything was exported."""
    from trajudge.environments.model.case import read_cases  # noqa: PLC0415
    from trajudge.environments.serving.static_export import export, summary_table  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415
    from trajudge.util.terminal import terminal_console  # noqa: PLC0415

    cases = read_cases(options.cases)
    refused = export(cases, options.out, options.pages)
    console = terminal_console()
    print_tables([summary_table(cases, refused)])
    console.print(f"share {options.out / 'bundles'}; keep {options.out / 'keys.jsonl'} to yourself")
    return OK if len(refused) < len(cases) else FAILURES


if __name__ == "__main__":
    sys.exit(main())
