"""``trajudge audit``: audit a rule-based evaluator against experts and judges."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.eval.audit.options import parser
from trajudge.trajectories.util.atomic import make_folder
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import OK, command, saved_behind_output
from trajudge.trajectories.util.options import read_settings

if TYPE_CHECKING:
    from trajudge.eval.audit.report import Audit
    from trajudge.eval.audit.settings import AuditConfig


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Audit what the command line names and return the exit code."""
    from trajudge.eval.audit.audit import audit  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.audit.settings import AuditConfig  # noqa: PLC0415

    config = read_settings(AuditConfig, options)
    report = audit(config)
    with saved_behind_output() as save:
        save(_write, report, config.out)
        _show(report, config)
    sys.stderr.write(f"the audit is in {config.out}\n")
    return OK


def _write(report: Audit, folder: Path) -> None:
    try:
        make_folder(folder, "--out")
        (folder / "audit.json").write_text(
            report.model_dump_json(indent=2) + "\n", encoding="utf-8"
        )
        lines = "".join(case.model_dump_json() + "\n" for case in report.cases)
        (folder / "cases.jsonl").write_text(lines, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error


def _show(report: Audit, config: AuditConfig) -> None:
    from trajudge.eval.audit.report import sentences, summary, tables  # noqa: PLC0415

    if not config.full:
        rest = f"All groups, success rates and agents: --full; cases: {config.out / 'cases.jsonl'}"
        sys.stdout.write(summary(report, rest=rest))
        return
    from trajudge.trajectories.util.tables import all_folded, render  # noqa: PLC0415

    sys.stdout.write(render(tables(report), "table") + "\n")
    sys.stdout.writelines(line + "\n" for line in all_folded(sentences(report)))


if __name__ == "__main__":
    sys.exit(main())
