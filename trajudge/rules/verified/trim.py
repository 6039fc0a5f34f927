"""``trajudge rules trim``: make runs' traces small, so that each is evaluated as before.

trajudge rules trim --tasks webarena-verified.json --runs runs/ --out small/
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.rules.options import add_site_options, rules_parser
from trajudge.util.commands import FAILURES, OK, OptionAdder, command
from trajudge.util.terminal import one_line


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = rules_parser(
        "trim",
        "Make runs' traces small, so that each is evaluated as before.",
        "0 done, 1 a trace could not be read, 2 a mistake in the call or its files",
    )
    add = OptionAdder(made)
    add.file("--tasks", "the tasks of WebArena Verified", required=True)
    add.value("--runs", "PATH", "a folder of runs, or a submission", type=Path, required=True)
    add.output_folder("--out", "where the smaller runs go", required=True)
    add.repeated("--task", "ID", "only this task; repeatable", default=[])
    add_site_options(made)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Trim the traces and say how much smaller they are; return 1 if one could not be read."""
    from trajudge.rules.verified.dataset import load_tasks  # noqa: PLC0415
    from trajudge.rules.verified.network import given_hosts  # noqa: PLC0415
    from trajudge.rules.verified.runs import trim_runs  # noqa: PLC0415

    tasks = load_tasks(options.tasks) if options.site else ()
    hosts = given_hosts(options.sites, options.site, tasks)
    report = trim_runs(options.tasks, options.runs, options.out, options.task, hosts)
    for failure in report.failures:
        sys.stderr.write(f"warning: {one_line(failure)}\n")
    small, large = report.bytes_after / 2**20, report.bytes_before / 2**20
    sys.stdout.write(
        f"{report.runs} runs: traces of {large:.2f} MiB take {small:.2f} MiB, "
        f"{report.entries_before:,} entries are {report.entries_after:,}; "
        "every one is evaluated as before\n"
        f"written: {one_line(str(options.out))}\n"
    )
    return FAILURES if report.failures else OK


if __name__ == "__main__":
    sys.exit(main())
