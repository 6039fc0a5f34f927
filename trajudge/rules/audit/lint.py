"""``trajudge rules lint``: find weaknesses of task specifications.

trajudge rules lint --tasks test.raw.json
trajudge rules lint --tasks mine.json --min-severity error --out lint/ --fail-on-findings
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.rules.options import DIALECT_NAMES, rules_parser
from trajudge.util.commands import FAILURES, OK, OptionAdder, command, saved_behind_output, whole
from trajudge.util.terminal import one_line

# As rules.findings.Severity, which --help does not wait for.
SEVERITIES = ("error", "warning", "note")


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = rules_parser(
        "lint",
        __doc__,
        "0 done, 1 findings of the categories and severities asked for under --fail-on-findings, "
        "2 a mistake in the call or its files, 130 interrupted",
    )
    made.add_argument("--tasks", type=Path, required=True, metavar="FILE", help="the task file")
    made.add_argument(
        "--dialect", choices=DIALECT_NAMES, help="dialect of the tasks (default: recognised)"
    )
    made.add_argument(
        "--category", action="append", metavar="NAME", help="only this category; may be repeated"
    )
    made.add_argument(
        "--min-severity",
        choices=SEVERITIES,
        default=SEVERITIES[-1],
        help="error: no honest run passes, or one that did nothing does; warning: also what lets "
        "some wrong runs pass; note: all (default)",
    )
    made.add_argument(
        "--show", type=whole, default=3, metavar="N", help="findings shown (default: 3)"
    )
    OptionAdder(made).output_folder("--out", "write lint.json and lint.csv")
    made.add_argument(
        "--fail-on-findings", action="store_true", help="exit with 1 if there are findings"
    )
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Lint the tasks and show, and with ``--out`` write, the findings."""
    from trajudge.rules.audit import findings  # noqa: PLC0415
    from trajudge.rules.audit.suites import chosen_categories, open_tasks  # noqa: PLC0415

    _, rules, _, tasks = open_tasks(options.tasks, options.dialect)
    least = findings.Severity(options.min_severity)
    severities = chosen_categories(options.category, least, rules)
    found = [one for one in rules.lint(tasks) if one.category in severities]
    unions = {name: parts for name, parts in rules.unions.items() if {*parts} <= {*severities}}
    counted = findings.counts(found, severities, unions)
    with saved_behind_output() as save:
        if options.out:
            save(findings.write_findings, options.out, rules.dialect, counted, found)
        title = f"{options.tasks.name}: {len(tasks)} tasks ({rules.dialect})"
        findings.show_findings(title, counted, found, options.show)
    if options.out:
        sys.stdout.write(f"written: {one_line(str(options.out / 'lint.json'))} and lint.csv\n")
    return FAILURES if found and options.fail_on_findings else OK


if __name__ == "__main__":
    sys.exit(main())
