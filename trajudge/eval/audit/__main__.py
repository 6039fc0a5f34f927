"""``trajudge audit``: audit a rule-based evaluator against experts and judges."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.util.commands import (
    OK,
    OptionAdder,
    TextParser,
    command,
    read_settings,
    saved_behind_output,
)
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder

if TYPE_CHECKING:
    from trajudge.eval.audit.audit import Audit
    from trajudge.eval.audit.settings import AuditConfig


_DESCRIPTION = """\
Find where a rule-based evaluator is wrong, and what that changes. Compares the official rewards
(or, with --evaluator, a judge's verdicts) of runs or published judgments with expert labels and
with the judges.

  trajudge audit runs/*
  trajudge audit --judgments DIR --split test --templates test.raw.json
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(
        prog="trajudge audit",
        description=_DESCRIPTION,
    )
    add = OptionAdder(made)
    add.runs()
    add.folder("--judgments", "judgments in the published layout")
    add.labels("expert labels (default: those of the run)")
    add.choice("--split", ("dev", "test", "all"), "of the annotations", default="all")
    add.task_id()
    add.value("--evaluator", "NAME", "audit this judge instead of the official reward")
    add.value(
        "--data",
        "KIND:PATH",
        "trajectories, for goals and last steps of the cases (default: those of the runs)",
    )
    add.folder("--task-tables", "folder with webarena.csv and the like")
    add.file("--templates", "WebArena's tasks, for their templates")
    add.switch("--full", "print all tables and sentences instead of one screen")
    add.output_folder("--out", "default: audit/", default=Path("audit"))
    return made


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
    from trajudge.eval.audit.audit import sentences, summary, tables  # noqa: PLC0415

    if not config.full:
        rest = f"All groups, success rates and agents: --full; cases: {config.out / 'cases.jsonl'}"
        sys.stdout.write(summary(report, rest=rest))
        return
    from trajudge.util.tables import all_folded, render  # noqa: PLC0415

    sys.stdout.write(render(tables(report), "table") + "\n")
    sys.stdout.writelines(line + "\n" for line in all_folded(sentences(report)))


if __name__ == "__main__":
    sys.exit(main())
