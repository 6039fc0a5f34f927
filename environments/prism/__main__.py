"""``trajudge env prism [REPORT ...]``: benchmarks against the five PRISM principles.

A REPORT is a JSON file that answers the rubric (``environments.prism.report.Report``); without one
the applications of this package are measured. Exit code 1 if a benchmark does not satisfy all five.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from trajudge.environments.prism.own import own_report
from trajudge.environments.prism.report import Graded, Report, grade, read_report, satisfied
from trajudge.eval.reporting.rendering import Table, render
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, FAILURES, Parser, user_errors
from trajudge.trajectories.util.terminal import terminal_console


def _table(name: str, graded: Sequence[Graded]) -> Table:
    return Table(f"PRISM: {name}", ("principle", "grade", "evidence"), graded, names=3)


def _content(report: Report, graded: Sequence[Graded]) -> dict[str, object]:
    grades = {entry.principle: entry.grade for entry in graded}
    return {"report": report.model_dump(mode="json"), "grades": grades}


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = Parser(prog="trajudge env prism", description=__doc__)
    parser.add_argument("reports", nargs="*", type=Path, metavar="REPORT")
    parser.add_argument("--out", type=Path, default=Path("prism.json"), help="file to write")
    parser.add_argument("--checked", type=int, default=200, help="own configurations to check")
    parser.add_argument("--seed", type=int, default=0, help="seed of these (default 0)")
    options = parser.parse_args(arguments)
    if options.checked < 1 or options.seed < 0:
        raise UserError("--checked needs a number from 1, --seed one from 0")
    given = [read_report(path) for path in options.reports]
    reports = given or [own_report(options.checked, options.seed)]
    graded = [grade(report) for report in reports]
    pairs = list(zip(reports, graded, strict=True))
    content = [_content(*pair) for pair in pairs]
    write_bytes(options.out, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    tables = [_table(report.name, grades) for report, grades in pairs]
    terminal_console(soft_wrap=True).print(render(tables, "table"))
    return DONE if all(map(satisfied, graded)) else FAILURES


if __name__ == "__main__":
    sys.exit(main())
