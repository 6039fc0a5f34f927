"""``trajudge env prism [REPORT ...]``: benchmarks against the five PRISM principles.

The principles and their rubric are those of Statistical Precipice (section 3 and appendix 20, arXiv
2605.08261). A REPORT is a JSON file that answers the rubric (``environments.prism.report.Report``),
or what this command saved; without one the applications of this package are measured. Exit code 1
if a benchmark does not satisfy all five.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.environments.options import add_seed
from trajudge.util.commands import (
    FAILURES,
    OK,
    OptionAdder,
    Parser,
    case_count,
    command,
    saved_behind_output,
)

if TYPE_CHECKING:
    from trajudge.environments.prism.report import Graded
    from trajudge.util.tables import Table


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env prism", description=__doc__)
    add = OptionAdder(made)
    add.value("reports", "REPORT", "a benchmark's answers (JSON)", nargs="*", type=Path)
    add.output_file("--save", "file to write", default=Path("prism.json"))
    add.number("--checked", "configurations to check per application", case_count, default=200)
    add_seed(made)
    return made


def _table(name: str, graded: Sequence[Graded]) -> Table:
    from trajudge.util.tables import Table  # noqa: PLC0415

    return Table(f"PRISM: {name}", ("principle", "grade", "evidence"), graded, names=3)


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Grade the benchmarks; return 0 if all satisfy the five principles."""
    from trajudge.environments.prism.own import own_report  # noqa: PLC0415 - not for --help
    from trajudge.environments.prism.report import (  # noqa: PLC0415
        GradedReport,
        grade,
        read_reports,
        satisfied,
    )
    from trajudge.environments.saving import save_result  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415

    read = [report for path in options.reports for report in read_reports(path)]
    reports = read or [own_report(options.checked, options.seed)]
    graded = [grade(report) for report in reports]
    pairs = list(zip(reports, graded, strict=True))
    saved = [
        GradedReport(report=report, grades={one.principle: one.grade for one in grades})
        for report, grades in pairs
    ]
    tables = [_table(report.name, grades) for report, grades in pairs]
    with saved_behind_output() as save:
        save(save_result, options.save, [one.model_dump(mode="json") for one in saved])
        print_tables(tables)
    return OK if all(map(satisfied, graded)) else FAILURES


if __name__ == "__main__":
    sys.exit(main())
