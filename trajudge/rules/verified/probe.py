"""``trajudge rules probe``: record what a site's probes say before and after a run.

trajudge rules probe --probes probes.json --run-folder runs/tea-1 --when before
trajudge rules probe --probes probes.json --run-folder runs/tea-1 --when after
"""

from __future__ import annotations

import argparse
import sys

from trajudge.rules.options import rules_parser
from trajudge.util.commands import FAILURES, OK, OptionAdder, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = rules_parser(
        "probe",
        "Record what a site's probes say before or after a run.",
        "0 done, 1 a probe had no reply, 2 a mistake in the call or its files",
    )
    add = OptionAdder(made)
    add.file("--probes", "probes by name (JSON)", required=True)
    add.output_folder("--run-folder", "folder of the agent's run", required=True)
    add.choice("--when", ("before", "after"), "of the run", required=True)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Record the state; return 1 if a probe had no reply."""
    from trajudge.rules.verified.state import load_probes, record  # noqa: PLC0415 - --help needs none
    from trajudge.util.errors import UserError  # noqa: PLC0415

    probes = load_probes(options.probes)
    if not probes:
        raise UserError(f"{options.probes}: holds no probe: name at least one")
    replies = record(options.run_folder, probes, options.when)
    failures = {name: reply.failure for name, reply in replies.items() if reply.failure}
    for name, failure in failures.items():
        sys.stderr.write(f"probe {name}: {failure}\n")
    return FAILURES if failures else OK


if __name__ == "__main__":
    sys.exit(main())
