"""``trajudge rules mutate``: measure false accepts and false rejects of the rules on near misses.

    trajudge rules mutate --tasks webarena-verified.json
    trajudge rules mutate --tasks tasks.json --runs correct/ --site shopping=http://shop.test

Without ``--runs`` a correct run is built from every task's specification. The runs of ``--runs``,
in the form that ``trajudge rules evaluate`` reads, are taken to be correct: one that the rule fails
is a false rejection.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.rules.options import (
    add_site_options,
    add_task_options,
    rules_parser,
)
from trajudge.util.commands import OK, OptionAdder, command, saved_behind_output, whole
from trajudge.util.errors import UserError


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = rules_parser(
        "mutate",
        __doc__,
        "0 done, 2 a mistake in the call or its files, 130 interrupted",
    )
    add = OptionAdder(made)
    add_task_options(made)
    add.value("--runs", "PATH", "correct runs (default: built from the tasks)", type=Path)
    add.switch("--passing-only", "leave out runs that the rule does not pass")
    add_site_options(made)
    add.number("--show", "misjudgments shown, five without --full (default: 10)", whole, default=10)
    add.switch("--full", "print all changes and --show misjudgments instead of one screen")
    add.output_folder("--out", "write mutation.json and mutation.csv")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Change correct runs, judge them, and show, and with ``--out`` write, where the rule erred."""
    from trajudge.rules.audit.mutation import (  # noqa: PLC0415
        mutation_report,
        print_report,
        write_report,
    )
    from trajudge.rules.audit.suites import open_tasks  # noqa: PLC0415
    from trajudge.rules.verified.network import given_hosts  # noqa: PLC0415
    from trajudge.util.terminal import progress_bar  # noqa: PLC0415

    path, rules, mode, tasks = open_tasks(options.tasks, options.dialect, options.mode)
    sites = given_hosts(options.sites, options.site, tasks)
    suite = rules.mutations(tasks, options.runs, mode, sites)
    with progress_bar() as show:
        report = mutation_report(
            *suite,
            passing_only=options.passing_only,
            progress=lambda done: show("runs", done, len(tasks)),
        )
    if not report.mutators:
        raise UserError(f"{options.runs or path}: no run to change: add one that passes")
    title = f"{path.name}, {mode} rules"
    with saved_behind_output() as save:
        if options.out:
            save(write_report, options.out, rules.dialect, mode, report)
        print_report(title, report, options.show, out=options.out, full=options.full)
    return OK


if __name__ == "__main__":
    sys.exit(main())
